"""Build a cell: fetch, stage, BuildKit to an OCI archive, into the store.

A build is named by the hash of its inputs. One that was done before is not done again.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tfenv import buildx, digest, handover, oci
from tfenv.context import Staged, staged
from tfenv.disk import check_all, engine_folder, estimate
from tfenv.engine import Engine, check, probe, probe_builder, run_command
from tfenv.errors import IntegrityError, UsageError

if TYPE_CHECKING:
    from tfenv.console import Console
    from tfenv.digest import Digest
    from tfenv.inputs import Inputs
    from tfenv.model import Lock
    from tfenv.store import Store


@dataclass(frozen=True, kw_only=True)
class Built:
    """A build that is in the store, and perhaps in the engine.

    Args:
        archive: the OCI archive; its name is its own sha256.
        reused: it had been built before. seconds: by stage.
        log: the builder's output, None when nothing was built.
    """

    inputs: Inputs
    archive: Path
    digest: Digest
    reused: bool
    seconds: Mapping[str, float] = field(default_factory=dict)
    log: Path | None = None


@dataclass(frozen=True)
class Host:
    """What a build needs of this machine."""

    store: Store
    console: Console
    env: Mapping[str, str]


def ready_engine(env: Mapping[str, str]) -> Engine:
    """The engine, when it can export reproducibly; NotReadyError says what to change otherwise."""
    engine = probe(run_command, env)
    check(engine)
    return engine


def build(inputs: Inputs, host: Host, *, no_cache: bool = False, archive_only: bool = False) -> Built:
    """The archive of ``inputs``, built unless the store has it.

    Args:
        no_cache: build although it is there, without BuildKit's cache.
        archive_only: do not let the engine keep the image; ``images.settle`` then loads the archive.

    Raises:
        NotReadyError: engine, disk or network; MissingInputs: a locked file is gone.
        BuildError: a step failed. No tag is moved by any of them, and no half-written file stays.
    """
    if not no_cache and (found := find(inputs, host.store)):
        return found
    began = time.monotonic()
    engine = ready_engine(host.env)
    _check_disk(inputs.own, engine, host.store)
    with host.store.lock():
        if not no_cache and (found := find(inputs, host.store)):
            return found  # by the tfenv that held the lock
        fetch_inputs(inputs.own, host)
        fetched = time.monotonic()
        keep = not archive_only and (engine.builder is None or engine.builder.own)
        try:
            with staged(inputs.own, inputs.files, host.store, inputs.hash[:16]) as stage:
                described, log = _run(inputs, engine, stage, host, no_cache=no_cache, keep=keep)
                exported = time.monotonic()
                made = _digest(inputs, described, engine)
                size = described.path.stat().st_size
                blob = host.store.adopt(described.path)
            record = json.loads(digest.dump(made)) | {"archive": blob.name, "archive_bytes": size}
            host.store.write_record(inputs.hash, record)
        except BaseException:
            if keep:
                run_command([engine.client or "docker", "image", "rm", inputs.building])
            raise
    seconds = {
        "fetch": round(fetched - began, 2),
        "build": round(exported - fetched, 2),
        "store": round(time.monotonic() - exported, 2),
    }
    return Built(inputs=inputs, archive=blob, digest=made, reused=False, seconds=seconds, log=log)


def find(inputs: Inputs, store: Store) -> Built | None:
    """The build of these inputs that the store has; None where it, or a whole archive of it, is missing."""
    record = store.read_record(inputs.hash)
    try:
        if record is None or not store.has(record["archive"], record["archive_bytes"]):
            return None
        made = digest.from_json(record)
    except (KeyError, TypeError, ValueError):
        return None
    return Built(inputs=inputs, archive=store.path(record["archive"]), digest=made, reused=True)


def fetch_inputs(lock: Lock, host: Host) -> None:
    """Bring what the lock names into the store, with this user's own index, proxy and CA."""
    from tfenv.fetch import fetch, lacks_interpreter, missing
    from tfenv.index import discover

    debs, wheels = missing(lock, host.store)
    if not debs and not wheels and not lacks_interpreter(lock, host.store):
        return
    total = sum(package.size for package in debs) + sum(wheel.size for wheel in wheels)
    with host.console.downloads(len(debs) + len(wheels), total) as progress:
        fetch(lock, host.store, discover(host.env), progress, env=host.env)


def stage_for_hand(inputs: Inputs, host: Host, root: Path) -> list[str]:
    """Stage a build in the new folder ``root``; return the command line that builds it by hand."""
    from tfenv.context import stage

    engine = ready_engine(host.env)
    root = root.absolute()
    try:
        root.mkdir(parents=True)
    except FileExistsError as error:
        raise UsageError(f"{root} exists", remedy="name a folder that does not exist yet") from error
    try:
        fetch_inputs(inputs.own, host)
    except BaseException:
        root.rmdir()
        raise
    try:
        laid = stage(inputs.own, inputs.files, host.store, root)
    except BaseException:
        shutil.rmtree(root, ignore_errors=True)
        raise
    return _argv(inputs, engine, laid)


def _check_disk(lock: Lock, engine: Engine, store: Store) -> None:
    needs = estimate(lock, store.has)
    places = {store.root: needs.store}
    if folder := engine_folder(Path(engine.root_dir or "/var/lib/docker")):
        places[folder] = needs.engine
    check_all(places)


def _argv(
    inputs: Inputs, engine: Engine, stage: Staged, *, no_cache: bool = False, image: str = ""
) -> list[str]:
    return buildx.build_argv(
        engine,
        context=stage.main,
        dockerfile=stage.dockerfile,
        named_contexts={**stage.named, **inputs.contexts},
        epoch=inputs.own.epoch,
        output=stage.archive,
        metadata=stage.metadata,
        no_cache=no_cache,
        image=image,
    )


def _run(
    inputs: Inputs, engine: Engine, stage: Staged, host: Host, *, no_cache: bool, keep: bool
) -> tuple[oci.Archive, Path]:
    name = f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}-{inputs.cell.name}.log"
    log = host.store.logs_dir / name
    argv = _argv(inputs, engine, stage, no_cache=no_cache, image=inputs.building if keep else "")
    folder = stage.archive.with_suffix(".folder")
    if inputs.base is not None:
        argv = handover.into_folder(argv, stage.archive, folder, inputs.base)
    with host.console.build_view() as on_event:
        result = buildx.run_build(argv, buildx.client_env(host.env), log, on_event, metadata=stage.metadata)
    if inputs.base is not None:
        handover.pack(folder, inputs.base, stage.archive)
    described = proven(stage.archive, result.digest, inputs.cell.name)
    oci.require_compression(described, "zstd")
    return described, log


def proven(archive: Path, said: str, cell: str) -> oci.Archive:
    """What a builder has written, read whole.

    Args:
        said: digest of the manifest, as the builder told it; empty where it did not.

    Raises:
        IntegrityError: it is damaged, or not what the builder said.
    """
    oci.verify_blobs(archive)
    described = oci.describe(archive)
    if said and described.manifest_digest != said:
        raise IntegrityError(
            f"the archive of {cell} holds {described.manifest_digest}, the builder said {said}",
            remedy="type the command again; if it stays so, the engine's export is broken",
        )
    return described


def builder_name(engine: Engine) -> str:
    """What has built, with its version, as digest.json records it."""
    if engine.builder and not engine.builder.own:
        # A builder in a container tells its version only once it has been started.
        known = probe_builder(run_command, engine.client or "docker") or engine.builder
        return f"BuildKit {known.buildkit}"
    return f"Docker Engine {engine.server_version}"


def _digest(inputs: Inputs, described: oci.Archive, engine: Engine) -> Digest:
    return digest.Digest(
        inputs=inputs.hash,
        lock=inputs.lock_hash,
        manifest=described.manifest_digest,
        config=described.config_digest,
        diff_ids=described.diff_ids,
        layer_bytes=tuple(layer.size for layer in described.layers),
        builder=builder_name(engine),
    )
