"""Make a snapshot: stage the build once more, and put all of it into a folder with what it has to give."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tfenv import __version__, build, buildx, digest
from tfenv.context import staged
from tfenv.engine import run_command
from tfenv.times import rfc3339

from . import parts, tree
from .base import bases
from .descriptors import Blob
from .format import (
    ARTIFACT,
    CELL,
    CREATED,
    IMAGE,
    LOCK,
    MANIFEST,
    REF,
    TITLE,
    Builder,
    Context,
    Expected,
    Snapshot,
    dump,
)
from .layout import Layout
from .writing import writing

if TYPE_CHECKING:
    from tfenv.build import Built, Host
    from tfenv.engine import Engine
    from tfenv.inputs import Inputs


@dataclass(frozen=True, kw_only=True)
class Archived:
    """A snapshot in a folder.

    Args:
        digest: of its manifest; name: what it can be called in its folder.
        files, bytes: number and size of its files; new_bytes: what the folder grew by.
        known: it was there already.
    """

    layout: Path
    digest: str
    name: str
    files: int
    bytes: int
    new_bytes: int
    known: bool


def archive(inputs: Inputs, host: Host, folder: Path, *, cell_folder: Path, reports: Path) -> Archived:
    """Put a built cell into a folder of snapshots; build it first where the store has no build of it.

    Args:
        cell_folder: images/CELL, for the recorded digest. reports: folder of verdicts.

    Raises:
        NotReadyError: engine, disk, network. IntegrityError: an input was changed. UsageError: the folder
        holds something else.
    """
    layout = Layout(folder, say=host.console.note)
    engine = build.ready_engine(host.env)
    with host.store.lock(), _built(inputs, host) as (built, inputs):
        host.console.note(f"{inputs.cell.name}: reading the files of the image")
        files = tree.read_tree(built.archive)
        build.fetch_inputs(inputs.own, host)
        name = f"archive-{inputs.hash[:16]}"
        host.store.tmp_dir.mkdir(parents=True, exist_ok=True)
        with (
            staged(inputs.own, inputs.files, host.store, name) as stage,
            bases(inputs, _patiently, engine.client or "docker", host.store.tmp_dir) as (contexts, layouts),
        ):
            subject = parts.Subject(
                inputs=inputs,
                built=built,
                staged=stage,
                tree=files,
                reports=reports,
                store=host.store,
                bases=layouts,
                recorded=_text(cell_folder / digest.FILE_NAME),
            )
            snapshot = describe(inputs, built, files, engine, contexts)
            return write(layout, snapshot, parts.items(subject))


# A base image of gigabytes is pulled and written by the engine.
_patiently = partial(run_command, timeout=3600)


@contextmanager
def _built(inputs: Inputs, host: Host) -> Iterator[tuple[Built, Inputs]]:
    """The build, and what BuildKit read: an environment's with the image of its row, layers and all."""
    from tfenv.team import flow
    from tfenv.team.inputs import TeamInputs, on, row_of
    from tfenv.team.layout import unpacked

    if not isinstance(inputs, TeamInputs):
        yield build.build(inputs, host, archive_only=True), inputs
        return
    built = flow.build_on_row(inputs, host, no_cache=False, archive_only=True)
    row = row_of(inputs, host)
    with unpacked(row.archive, host.store, layers=True) as at:
        yield built, on(inputs, row, at)


def describe(
    inputs: Inputs, built: Built, files: tree.Tree, engine: Engine, contexts: tuple[Context, ...] = ()
) -> Snapshot:
    """The document of a build."""
    made = built.digest
    return Snapshot(
        cell=inputs.cell.name,
        platform=inputs.lock.platform,
        lock=inputs.lock_hash,
        inputs=inputs.hash,
        locked=inputs.locked,
        epoch=inputs.own.epoch,
        export=buildx.EXPORT,
        contexts=contexts,
        stand_in=inputs.stand_in,
        template=inputs.lock.template,
        tfenv=__version__,
        builder=identity(engine, made.builder),
        expected=Expected(
            tree=files.digest,
            diff_ids=made.diff_ids,
            config=made.config,
            manifest=made.manifest,
            layer_bytes=made.layer_bytes,
        ),
    )


def identity(engine: Engine, name: str) -> Builder:
    """The builder as a snapshot records it.

    Args:
        name: as ``digest.Digest.builder`` has it.
    """
    return Builder(
        name=name,
        engine=engine.server_version or "",
        client=engine.client_version or "",
        buildx=engine.buildx or "",
        buildkit=(engine.builder.buildkit if engine.builder else None) or "",
        driver=engine.builder.driver if engine.builder else "",
    )


def write(layout: Layout, snapshot: Snapshot, items: Iterable[parts.Item]) -> Archived:
    """Write a snapshot into a folder: blobs first, the index last.

    Raises:
        NotReadyError: the disk is full; the folder holds what it held before.
    """
    with writing(layout) as writer:
        blobs = []
        for item in items:
            if isinstance(item.content, Path):
                found, size = writer.put_file(item.content, item.sha256)
            else:
                found, size = writer.put(iter([item.content]), item.sha256, name=item.title)
            notes = {TITLE: item.title}
            blobs.append(Blob(digest=found, size=size, media_type=item.media_type, annotations=notes))
        document = dump(snapshot)
        config, size = writer.put_bytes(document)
        described = Blob(digest=config, size=size, media_type=ARTIFACT)
        data = manifest_bytes(snapshot, described, blobs)
        found, size = writer.put_bytes(data)
        entries = writer.entries()
        known = any(entry.get("digest") == found for entry in entries)
        entry = Blob(
            digest=found, size=size, media_type=MANIFEST, annotations={**_notes(snapshot), REF: snapshot.cell}
        )
        writer.publish([*_older(entries, entry), {**entry.plain(), "artifactType": ARTIFACT}])
    total = {blob.digest: blob.size for blob in blobs}
    return Archived(
        layout=layout.root,
        digest=found,
        name=snapshot.cell,
        files=len(blobs),
        bytes=sum(total.values()) + len(document) + len(data),
        new_bytes=writer.added,
        known=known,
    )


def manifest_bytes(snapshot: Snapshot, document: Blob, files: Iterable[Blob]) -> bytes:
    """The manifest: the same snapshot is the same digest, whenever and wherever it is written."""
    value = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": ARTIFACT,
        "config": document.plain(),
        "layers": [file.plain() for file in files],
        "annotations": _notes(snapshot),
    }
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()


def _notes(snapshot: Snapshot) -> dict[str, str]:
    created = rfc3339(snapshot.epoch)
    return {
        CREATED: created,
        CELL: snapshot.cell,
        LOCK: f"sha256:{snapshot.lock}",
        IMAGE: snapshot.expected.manifest,
    }


def _older(entries: Iterable[Mapping[str, object]], new: Blob) -> list[dict[str, object]]:
    """The other snapshots; the cell's name is that of its newest, older ones are named by digest."""
    kept = []
    for entry in entries:
        if entry.get("digest") == new.digest:
            continue
        notes = dict(entry.get("annotations") or {})  # type: ignore[call-overload]
        if notes.get(REF) == new.annotations[REF]:
            del notes[REF]
            entry = {**entry, "annotations": notes}
        kept.append(dict(entry))
    return kept


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""
