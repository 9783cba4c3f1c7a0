"""Build a cell: fetch, stage, BuildKit to an OCI archive, into the store, load, tag last.

A build is named by the hash of its inputs. One that was done before is not done again; tags only move when
everything before has succeeded.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfenv import buildx, digest, lockfile, oci, render, rootfs
from tfenv.context import Staged, staged
from tfenv.disk import check_all, estimate
from tfenv.engine import Engine, check, probe, run_command
from tfenv.errors import IntegrityError, TfenvError, UsageError

if TYPE_CHECKING:
    from tfenv.console import Console
    from tfenv.digest import Digest
    from tfenv.model import Cell, Lock
    from tfenv.store import Store


@dataclass(frozen=True, kw_only=True)
class Built:
    """A build that is in the store, and perhaps in the engine.

    Args:
        archive: the OCI archive; its name is its own sha256.
        reused: it had been built before. seconds: by stage.
        log: the builder's output, None when nothing was built.
    """

    cell: str
    inputs: str
    archive: Path
    digest: Digest
    reused: bool
    locked: bool
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


def input_hash(lock: Lock, files: Mapping[str, str]) -> str:
    """sha256 over all that decides the image's bytes, but for the builder's own version."""
    recipe = [render.template_version(), rootfs.recipe_version(), buildx.EXPORT]
    told = [lockfile.lock_hash(lock), recipe, sorted(files.items())]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def build(
    cell: Cell,
    lock: Lock,
    host: Host,
    *,
    no_cache: bool = False,
    locked: bool = True,
    archive_only: bool = False,
    files: Mapping[str, str] | None = None,
) -> Built:
    """The cell's archive, built unless the store has it.

    Args:
        no_cache: build although it is there, without BuildKit's cache.
        archive_only: do not let the engine keep the image; ``load_and_tag`` then loads the archive.
        locked: false where ``lock`` is not the committed one; the image is marked so.
        files: what the lock renders to, where that is known.

    Raises:
        NotReadyError: engine, disk or network; MissingInputs: a locked file is gone.
        BuildError: a step failed. Nothing is tagged or left half-written by any of them.
    """
    files = files or render.render(cell, lock, locked=locked)
    inputs = input_hash(lock, files)
    if not no_cache and (found := _recorded(cell, inputs, host.store, locked)):
        return found
    began = time.monotonic()
    engine = ready_engine(host.env)
    _check_disk(lock, engine, host.store)
    fetch_inputs(lock, host)
    fetched = time.monotonic()
    with host.store.lock(), staged(lock, files, host.store, inputs[:16]) as stage:
        own = engine.builder is None or engine.builder.driver == "docker"
        image = "" if archive_only or not own else _building(inputs)
        described, log = _run(cell, lock, engine, stage, host, no_cache=no_cache, image=image)
        exported = time.monotonic()
        blob = host.store.adopt(described.path)
        made = digest.Digest(
            lock=lockfile.lock_hash(lock),
            manifest=described.manifest_digest,
            config=described.config_digest,
            diff_ids=described.diff_ids,
            compressed_bytes=described.compressed_size,
            engine=engine.server_version or "",
            buildx=engine.buildx or "",
        )
        record = json.loads(digest.dump(made)) | {"archive": blob.name, "cell": cell.name}
        host.store.write_record(inputs, record)
    seconds = {
        "fetch": round(fetched - began, 2),
        "build": round(exported - fetched, 2),
        "store": round(time.monotonic() - exported, 2),
    }
    return Built(
        cell=cell.name,
        inputs=inputs,
        archive=blob,
        digest=made,
        reused=False,
        locked=locked,
        seconds=seconds,
        log=log,
    )


def fetch_inputs(lock: Lock, host: Host) -> None:
    """Bring what the lock names into the store, with this user's own index, proxy and CA."""
    from tfenv.fetch import fetch, missing
    from tfenv.index import discover

    debs, wheels = missing(lock, host.store)
    if not debs and not wheels:
        return
    total = sum(package.size for package in debs) + sum(wheel.size for wheel in wheels)
    with host.console.downloads(len(debs) + len(wheels), total) as progress:
        fetch(lock, host.store, discover(host.env), progress, env=host.env)


def _check_disk(lock: Lock, engine: Engine, store: Store) -> None:
    needs = estimate(lock, store.has)
    places = {store.root: needs.store}
    engine_root = Path(engine.root_dir or "/var/lib/docker")
    if engine_root.exists():
        places[engine_root] = needs.engine
    check_all(places)


def _recorded(cell: Cell, inputs: str, store: Store, locked: bool) -> Built | None:
    record = store.read_record(inputs)
    try:
        if record is None or not store.has(record["archive"]):
            return None
        made = _digest_of(record)
    except (KeyError, TypeError, ValueError):
        return None
    return Built(
        cell=cell.name,
        inputs=inputs,
        archive=store.path(record["archive"]),
        digest=made,
        reused=True,
        locked=locked,
    )


def _digest_of(record: Mapping[str, Any]) -> Digest:
    fields = {name: record[name] for name in digest.Digest.__dataclass_fields__}
    return digest.Digest(**{**fields, "diff_ids": tuple(fields["diff_ids"])})


def _run(
    cell: Cell, lock: Lock, engine: Engine, stage: Staged, host: Host, *, no_cache: bool, image: str
) -> tuple[oci.Archive, Path]:
    logs = host.store.logs_dir
    log = logs / f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}-{cell.name}.log"
    archive = stage.main.parent / "image.oci.tar"
    metadata = stage.main.parent / "metadata.json"
    argv = buildx.build_argv(
        engine,
        context=stage.main,
        dockerfile=stage.dockerfile,
        named_contexts=stage.named,
        epoch=lock.epoch,
        output=archive,
        metadata=metadata,
        no_cache=no_cache,
        image=image,
    )
    with host.console.build_view() as on_event:
        result = buildx.run_build(argv, buildx.client_env(host.env), log, on_event, metadata=metadata)
    described = oci.describe(archive)
    if result.digest and described.manifest_digest != result.digest:
        raise IntegrityError(
            f"the archive of {cell.name} holds {described.manifest_digest}, the builder said {result.digest}",
            remedy="type the command again; if it stays so, the engine's export is broken",
        )
    return described, log


def _building(inputs: str) -> str:
    """The passing name of an image that the engine keeps until it has been checked and tagged."""
    return f"tfenv-building:{inputs[:16]}"


def stage_for_hand(cell: Cell, lock: Lock, host: Host, root: Path) -> list[str]:
    """Stage a build in the new folder ``root``; return the command line that builds it by hand."""
    from tfenv.context import stage

    engine = ready_engine(host.env)
    fetch_inputs(lock, host)
    root = root.absolute()
    if root.exists():
        raise UsageError(f"{root} exists", remedy="name a folder that does not exist yet")
    root.mkdir(parents=True)
    laid = stage(lock, render.render(cell, lock), host.store, root)
    return buildx.build_argv(
        engine,
        context=laid.main,
        dockerfile=laid.dockerfile,
        named_contexts=laid.named,
        epoch=lock.epoch,
        output=root / "image.oci.tar",
        metadata=root / "metadata.json",
    )


def load_and_tag(built: Built, tags: tuple[str, ...], env: Mapping[str, str]) -> bool:
    """Move all tags to the build, loading its archive unless the engine has it; was anything moved?"""
    from tfenv.container import connect

    with connect(env) as containers:
        try:
            if all(containers.inspect(tag) == built.digest.manifest for tag in tags):
                return False
            known = containers.inspect(built.digest.manifest)
            containers.tag(known or containers.load(built.archive), tags)
            return True
        finally:
            with contextlib.suppress(TfenvError):
                containers.remove(_building(built.inputs))
