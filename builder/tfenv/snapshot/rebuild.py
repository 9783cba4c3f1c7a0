"""Build a snapshot again, from its own files alone where need be, and hold the result against it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfenv import build, buildx, digest, disk, oci
from tfenv.compare import image_of
from tfenv.context import place
from tfenv.errors import IntegrityError, NotReadyError, TfenvError

from . import comparing, format, guard, names, tree
from .archive import identity
from .descriptors import Manifest
from .format import NotComparable, Snapshot
from .layout import Layout
from .restore import Restored, restore, wanted
from .sides import Image

if TYPE_CHECKING:
    from tfenv.build import Host
    from tfenv.engine import Engine
    from tfenv.model import Lock

    from .descriptors import Blob


@dataclass(frozen=True, kw_only=True)
class Rebuilt:
    """A rebuild.

    Args:
        archive: the OCI archive, in the store. builder: what built now; before: what built then.
        elsewhere: inputs that the bundle lacked, and where they were found.
        seconds: by stage. log: the builder's output.
    """

    snapshot: Snapshot
    comparison: comparing.Comparison
    archive: Path
    manifest: str
    builder: format.Builder
    elsewhere: Mapping[str, str]
    seconds: Mapping[str, float]
    log: Path


def open_snapshot(layout: Layout, blob: Blob) -> tuple[Manifest, Snapshot]:
    """A snapshot's manifest and document.

    Raises:
        IntegrityError: they are damaged. NotComparable: a newer tfenv wrote them.
    """
    manifest = layout.manifest(blob)
    snapshot = format.load(layout.read(manifest.document), where=f"{layout.root}: {blob.digest[:19]}")
    return manifest, snapshot


def rebuild(
    layout: Layout,
    blob: Blob,
    host: Host,
    *,
    offline: bool = False,
    recorded: Callable[[str], digest.Digest | None] = lambda _cell: None,
) -> Rebuilt:
    """Build a snapshot without any cache, and compare.

    Args:
        offline: use no network at all, only the bundle and the store.
        recorded: what the user's own repository says that a cell gives. Only a rebuild that gives it is
            taken for a build of that cell: what a bundle says of itself may be a lie.

    Raises:
        Vanished: inputs are not to be had. NotComparable: another platform, or a newer format.
        NotReadyError: engine or disk. BuildError: a step failed. IntegrityError: the bundle is damaged.
    """
    began = time.monotonic()
    manifest, snapshot = open_snapshot(layout, blob)
    if snapshot.platform != buildx.PLATFORM:
        raise NotComparable(
            f"{snapshot.cell} was built for {snapshot.platform}, this tfenv builds for {buildx.PLATFORM}",
            remedy="rebuild it on a machine of that kind",
        )
    lock = _lock(layout, manifest)
    engine = build.ready_engine(host.env)
    if offline:
        _require_local(engine)
    _check_disk(manifest, snapshot, engine, host)
    with host.store.lock(), place(host.store, f"rebuild-{blob.digest[7:23]}") as root:
        restored = restore(layout, manifest, snapshot, lock, host, root, offline=offline)
        guard.require_closed(
            _dockerfile(restored), {context.name for context in snapshot.contexts} | {*restored.staged.named}
        )
        ready = time.monotonic()
        described, log = _build(snapshot, restored, engine, host, root)
        built = time.monotonic()
        builder = identity(engine, build.builder_name(engine))
        archive = host.store.adopt(described.path)
        described = oci.describe(archive)
        comparison = comparing.compare(_before(layout, manifest, snapshot), image_of(described, builder.name))
        _record(snapshot, described, builder, archive, host, recorded(snapshot.cell))
    return Rebuilt(
        snapshot=snapshot,
        comparison=comparison,
        archive=archive,
        manifest=described.manifest_digest,
        builder=builder,
        elsewhere=restored.elsewhere,
        seconds={
            "restore": round(ready - began, 2),
            "build": round(built - ready, 2),
            "compare": round(time.monotonic() - built, 2),
        },
        log=log,
    )


def _dockerfile(restored: Restored) -> str:
    try:
        return restored.staged.dockerfile.read_text("utf-8", "replace")
    except FileNotFoundError:
        raise IntegrityError(
            "the bundle holds no Dockerfile", remedy="restore it from another copy"
        ) from None


def _lock(layout: Layout, manifest: Manifest) -> Lock | None:
    """The snapshot's lock; None where it is damaged, or of a format that this tfenv does not read."""
    from tfenv.lockfile import load_lock

    file = manifest.by_title.get("lock.json")
    try:
        return load_lock(layout.read(file).decode("utf-8", "replace")) if file else None
    except TfenvError:
        return None


def _require_local(engine: Engine) -> None:
    if engine.endpoint and not engine.endpoint.startswith("unix://"):
        raise NotReadyError(
            f"the engine is at {engine.endpoint}, which is reached over a network",
            remedy="use an engine of this machine, or leave --offline out",
        )


def _check_disk(manifest: Manifest, snapshot: Snapshot, engine: Engine, host: Host) -> None:
    """As ``build`` does, but by the bundle's files: the lock may be one that is not read any more."""
    sizes = {f.title: f.size for f in wanted(manifest)}
    wheels = sum(s for t, s in sizes.items() if t.startswith("wheels/") and not t.startswith("wheels/tool/"))
    debs = sum(s for t, s in sizes.items() if t.startswith("debs/"))
    image = sum(snapshot.expected.layer_bytes)
    unpacked = int(disk.WHEEL_UNPACKED * wheels + disk.DEB_UNPACKED * debs)
    places = {host.store.root: image + disk.RESERVE}
    if folder := disk.engine_folder(Path(engine.root_dir or "/var/lib/docker")):
        places[folder] = unpacked + image + disk.RESERVE
    disk.check_all(places)


def _build(
    snapshot: Snapshot, restored: Restored, engine: Engine, host: Host, root: Path
) -> tuple[oci.Archive, Path]:
    stage = restored.staged
    bases = {c.name: f"oci-layout://{root / c.folder}@{c.digest}" for c in snapshot.contexts}
    log = host.store.logs_dir / f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}-rebuild-{snapshot.cell}.log"
    argv = buildx.build_argv(
        engine,
        context=stage.main,
        dockerfile=stage.dockerfile,
        named_contexts={**stage.named, **bases},
        epoch=snapshot.epoch,
        output=stage.archive,
        metadata=stage.metadata,
        no_cache=True,
        export=snapshot.export,
        network=False,
    )
    with host.console.build_view() as on_event:
        result = buildx.run_build(argv, buildx.client_env(host.env), log, on_event, metadata=stage.metadata)
    return build.proven(stage.archive, result.digest, snapshot.cell), log


def _before(layout: Layout, manifest: Manifest, snapshot: Snapshot) -> Image:
    """The snapshot's side, from the bundle alone; read only as far as it is needed."""
    expected, files = snapshot.expected, manifest.by_title

    def read(title: str) -> bytes:
        try:
            return layout.read(files[title], limit=256 << 20)
        except (KeyError, IntegrityError) as error:
            why = error.message if isinstance(error, IntegrityError) else "it is not in the bundle"
            raise NotComparable(
                f"{snapshot.cell} was rebuilt, and differs from the recorded digests; what differs cannot be "
                f"told without {title}: {why}",
                remedy="restore the bundle from another copy",
            ) from None

    def document(title: str) -> Mapping[str, Any]:
        try:
            value = json.loads(read(title))
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise IntegrityError(
                f"{title} in the bundle of {snapshot.cell} is no JSON object", remedy=names.HOSTILE
            )
        return value

    return Image(
        manifest_digest=expected.manifest,
        config_digest=expected.config,
        diff_ids=expected.diff_ids,
        manifest=lambda: document("expected/manifest.json"),
        config=lambda: document("expected/config.json"),
        tree=lambda: tree.load(read("expected/tree.jsonl.zst")),
        builder=snapshot.builder.name,
    )


def _record(
    snapshot: Snapshot,
    described: oci.Archive,
    builder: format.Builder,
    archive: Path,
    host: Host,
    recorded: digest.Digest | None,
) -> None:
    """Tell the store that it has the cell's build again, so that `tfenv build` need not make it."""
    made = digest.Digest(
        inputs=snapshot.inputs,
        lock=snapshot.lock,
        manifest=described.manifest_digest,
        config=described.config_digest,
        diff_ids=described.diff_ids,
        layer_bytes=tuple(layer.size for layer in described.layers),
        builder=builder.name,
    )
    if digest.compare(made, recorded) not in ("identical", "same content"):
        return
    record = json.loads(digest.dump(made)) | {
        "archive": archive.name,
        "archive_bytes": archive.stat().st_size,
    }
    host.store.write_record(snapshot.inputs, record)
