"""The peer: a plain Dockerfile on the same base, built by the same engine with its defaults."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tfenv.buildx import client_env
from tfenv.index import IndexSettings
from tfenv.progress import Decoder, decode

HERE = Path(__file__).resolve().parent
INSTALLING = "Installing collected packages"  # pip prints this when it has downloaded everything


@dataclass(frozen=True)
class PlainBuild:
    """One build of the peer: seconds of it all, and until pip had downloaded everything."""

    seconds: float
    download_seconds: float
    command: str


def build_base(docker: str, stage: Path, epoch: int, tag: str) -> None:
    """Build the cell's own base stage from a folder that `tfenv build --stage` made; load it as ``tag``."""
    argv = [docker, "buildx", "build", "--file", str(stage / "context/Dockerfile"), "--target", "base"]
    for name in ("debs", "wheels"):
        argv += ["--build-context", f"{name}={stage / name}"]
    argv += ["--build-arg", f"SOURCE_DATE_EPOCH={epoch}", "--provenance=false", "--load", "--tag", tag]
    subprocess.run([*argv, str(stage / "context")], check=True, env=client_env(os.environ))


def pip_conf(settings: IndexSettings) -> str:
    """pip's configuration inside the build: this machine's index and proxy; its CA bundle is a secret."""
    lines = ["[global]", "disable-pip-version-check = true", f"timeout = {settings.timeout:.0f}"]
    remote = [url for url in settings.extra_index_urls if not url.startswith("file:")]
    for name, value in (
        ("index-url", settings.index_url),
        ("extra-index-url", " ".join(remote)),
        ("trusted-host", " ".join(settings.trusted_hosts)),
        ("proxy", settings.proxy),
        ("cert", settings.cert and "/run/secrets/ca.pem"),
    ):
        if value:
            lines.append(f"{name} = {value}")
    return "\n".join(lines) + "\n"


def prepare(context: Path, pip_wheel: Path, settings: IndexSettings) -> list[str]:
    """Lay out the peer's build context; return the secrets' options."""
    context.mkdir()
    (context / "pip.whl").write_bytes(pip_wheel.read_bytes())
    (context / "Dockerfile").write_bytes((HERE / "plain.Dockerfile").read_bytes())
    conf = context.parent / "pip.conf"
    conf.touch(mode=0o600)
    conf.write_text(pip_conf(settings))
    secrets = ["--secret", f"id=pip.conf,src={conf}"]
    if settings.cert:
        secrets += ["--secret", f"id=ca.pem,src={settings.cert}"]
    return secrets


def build(
    docker: str, context: Path, secrets: list[str], arguments: Mapping[str, str], tag: str, log: Path
) -> PlainBuild:
    """Build the peer without cache, all else as the engine has it by default, ready to run."""
    argv = [docker, "buildx", "build", "--no-cache", "--progress=rawjson", "--tag", tag, *secrets]
    for name, value in arguments.items():
        argv += ["--build-arg", f"{name}={value}"]
    argv.append(str(context))
    begun = time.time()
    with log.open("wb") as output:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    seconds = time.time() - begun
    if done.returncode:
        raise SystemExit(f"the plain Dockerfile did not build: {log}\n{shlex.join(argv)}")
    with log.open() as lines:
        downloaded = installing_at(lines)
    return PlainBuild(seconds, downloaded - begun, shlex.join(argv))


def installing_at(lines: Iterable[str]) -> float:
    """When pip began to install, in Unix seconds, from what `--progress=rawjson` printed.

    Raises:
        ValueError: it never did.
    """
    decoder = Decoder()
    for line in lines:
        event = decoder.feed(line)
        for entry in (event.get("logs") or ()) if isinstance(event, dict) else ():
            if INSTALLING in decode(entry.get("data")):
                return seconds_of(entry["timestamp"])
    raise ValueError("pip has installed nothing")


def seconds_of(timestamp: str) -> float:
    """Unix seconds of an RFC 3339 time in UTC with nanoseconds, which Python 3.10 cannot read as it is."""
    whole, _, fraction = timestamp.removesuffix("Z").partition(".")
    return datetime.fromisoformat(f"{whole}+00:00").timestamp() + float(f"0.{fraction or 0}")
