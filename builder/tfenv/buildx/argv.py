"""The argument list of a build, and the environment that the docker client gets with it."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from tfenv.engine import Engine

PLATFORM = "linux/amd64"
# Decides the bytes of the archive. No rewrite-timestamp: see templates/tools/settle.sh.
# force-compression: the builder's cache may hold a layer that another build has exported as gzip. There are
# no layers of a registry's base to keep: a cell is built from scratch.
EXPORT = ("compression=zstd", "compression-level=7", "force-compression=true", "oci-mediatypes=true")

# buildx adds the `proxies` of the client's config.json as build arguments, where every RUN sees them
# (with the password in them). A given argument, also an empty one, wins over it.
PROXY_ARGS = tuple(
    name
    for low in ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy")
    for name in (low.upper(), low)
)
# Variables of the client that would change what is built.
_DROPPED = (
    "SOURCE_DATE_EPOCH",
    "BUILDX_BUILDER",
    "BUILDX_GIT_LABELS",
    "BUILDX_METADATA_PROVENANCE",
    "BUILDX_METADATA_WARNINGS",
    "BUILDX_NO_DEFAULT_LOAD",
    "BUILDKIT_PROGRESS",
    "BUILDKIT_SYNTAX",
    "DOCKER_DEFAULT_PLATFORM",
    "EXPERIMENTAL_BUILDKIT_SOURCE_POLICY",
)


def _csv(*fields: str) -> str:
    """``fields`` as one CSV record, as buildx reads --output: a path may hold a comma."""
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(fields)
    return out.getvalue()


def build_argv(
    engine: Engine,
    *,
    context: Path,
    dockerfile: Path,
    epoch: int,
    output: Path,
    metadata: Path,
    named_contexts: Mapping[str, Path | str] | None = None,
    no_cache: bool = False,
    image: str = "",
    export: Sequence[str] = EXPORT,
    network: bool = True,
) -> list[str]:
    """The argument list of a reproducible build to an OCI archive.

    Args:
        epoch: Unix seconds; creation time of the image, upper bound of the file times in it.
        output: the archive to write, best under a temporary name: a failed build leaves it empty.
        metadata: JSON file that buildx writes the digest to.
        image: also keep the image in the engine under this name; only for the engine's own builder.
        export: what the exporter is told. network: without it no step has one, whatever the Dockerfile says.
    """
    argv = [engine.client or "docker", "buildx", "build"]
    if engine.builder:
        argv += ["--builder", engine.builder.name]
    argv += ["--platform", PLATFORM, "--file", str(dockerfile)]
    for name, path in sorted((named_contexts or {}).items()):
        argv += ["--build-context", f"{name}={path}"]
    argv += ["--build-arg", f"SOURCE_DATE_EPOCH={epoch}"]
    for name in PROXY_ARGS if engine.proxied else ():
        argv += ["--build-arg", f"{name}="]
    if no_cache:
        argv += ["--no-cache"]
    if not network:
        argv += ["--network", "none"]
    argv += ["--provenance=false", "--sbom=false", "--progress=rawjson"]
    argv += ["--metadata-file", str(metadata)]
    argv += ["--output", _csv("type=oci", f"dest={output}", *export)]
    if image:
        argv += ["--output", _csv("type=image", f"name={image}", *export)]
    return [*argv, str(context)]


def client_env(env: Mapping[str, str]) -> dict[str, str]:
    """The environment of the client: ``env`` without what would change the result."""
    kept = {name: value for name, value in env.items() if name not in _DROPPED}
    return {**kept, "BUILDX_GIT_INFO": "false", "BUILDX_NO_DEFAULT_ATTESTATIONS": "1"}
