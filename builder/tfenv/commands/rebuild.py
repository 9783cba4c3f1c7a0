"""``tfenv rebuild``"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfenv.commands._common import emit, emit_error, json_option
from tfenv.errors import UsageError

if TYPE_CHECKING:
    from tfenv.build import Host
    from tfenv.digest import Digest
    from tfenv.snapshot.rebuild import Rebuilt
    from tfenv.snapshot.vanished import Vanished

_SHOWN = 20


@click.command("rebuild")
@click.argument("snapshot", metavar="SNAPSHOT")
@click.option("--offline", is_flag=True, help="No network at all: from the bundle (and the store) alone.")
@click.option(
    "--to", type=click.Path(path_type=Path), help="Also write the image, an OCI archive, to this file."
)
@click.option("--load", is_flag=True, help="Also load the image into the engine, as tfenv-rebuilt:CELL.")
@json_option
def command(snapshot: str, offline: bool, to: Path | None, load: bool, as_json: bool) -> int:
    """Build a snapshot again without any cache, and say whether it is the same.

    SNAPSHOT is DIR, DIR:CELL, DIR@sha256:..., or HOST/NAME:TAG in a registry.

    \b
    Exit codes: 0 identical, or the same content under another compressor
                1 different, or the bundle is damaged
                2 usage
                3 not comparable: another platform, a newer format, nothing recorded
                4 inputs have vanished; engine, disk or network not ready
                5 explained difference: every file that differs has a known, harmless cause
    """
    from tfenv.build import Host
    from tfenv.console import Console
    from tfenv.snapshot import choosing
    from tfenv.snapshot.layout import Layout
    from tfenv.snapshot.rebuild import rebuild
    from tfenv.snapshot.vanished import Vanished
    from tfenv.store import default_store

    host = Host(default_store(os.environ), Console(), os.environ)
    place = choosing.parse(snapshot)
    if isinstance(place, choosing.InRegistry):
        if offline:
            raise UsageError(
                f"{place} is in a registry, and --offline uses no network",
                remedy="pull it first: tfenv rebuild without --offline, or copy its folder",
            )
        from tfenv.snapshot import registry

        layout, blob = registry.pull(place, host)
    else:
        layout = Layout(place.folder)
        blob = choosing.choose(layout, place.name)
    if to is not None and (to.exists() or not to.parent.is_dir()):
        why = "exists" if to.exists() else "would lie in a folder that is not there"
        raise UsageError(f"{to} {why}", remedy="name a file that does not exist yet, in a folder that does")
    try:
        made = rebuild(layout, blob, host, offline=offline, recorded=_recorded)
    except Vanished as error:
        if not as_json:
            raise
        host.console.error(error)
        emit_error(error, lost=_lost(error))  # type: ignore[arg-type]
        return error.exit_code
    if to is not None:
        _copy(made.archive, to)
    if load:
        _load(made, host)
    emit(_told(made), as_json=as_json, text=_words(made))
    return made.comparison.exit_code


def _recorded(cell: str) -> Digest | None:
    """What this folder's repository says that the cell gives; None where it is no repository."""
    from tfenv import digest
    from tfenv.errors import MatrixError
    from tfenv.workspace import here

    try:
        return digest.read(here().images / cell)
    except MatrixError:
        return None


def _lost(error: Vanished) -> list[dict[str, object]]:
    return [
        {"file": one.title, "digest": one.digest, "why": one.why, "instead": list(one.instead)}
        for one in error.lost
    ]


def _copy(archive: Path, to: Path) -> None:
    import shutil

    aside = to.with_name(f".{to.name}.{os.getpid()}.tmp")
    try:
        shutil.copyfile(archive, aside)
        aside.replace(to)
    finally:
        aside.unlink(missing_ok=True)


def _load(made: Rebuilt, host: Host) -> None:
    from tfenv.container import connect

    name = f"tfenv-rebuilt:{made.snapshot.cell}"
    with connect(host.env) as containers:
        if not containers.inspect(made.manifest):
            containers.load(made.archive)
        containers.tag(made.manifest, (name,))
    host.console.note(f"loaded as {name}")


def _told(made: Rebuilt) -> dict[str, object]:
    from tfenv.plain import to_plain

    comparison = made.comparison
    return {
        "cell": made.snapshot.cell,
        "outcome": comparison.outcome,
        "exit_code": comparison.exit_code,
        "levels": dict(comparison.levels),
        "expected": made.snapshot.expected.manifest,
        "manifest": made.manifest,
        "causes": comparison.causes,
        "differences": [
            {
                "where": d.where,
                "path": d.path,
                "what": list(d.what),
                "causes": list(d.causes),
                "unexplained": list(d.left),
                "detail": d.detail,
            }
            for d in comparison.differences
        ],
        "builder": {"then": to_plain(made.snapshot.builder), "now": to_plain(made.builder)},
        "elsewhere": dict(made.elsewhere),
        "archive": str(made.archive),
        "seconds": dict(made.seconds),
        "log": str(made.log),
    }


_LEVELS: Mapping[str, str] = {
    "files": "file tree",
    "layers": "layers (diff ids)",
    "configuration": "configuration",
    "manifest": "manifest",
}


def _words(made: Rebuilt) -> str:
    from tfenv.snapshot.comparing import line, why

    comparison, snapshot = made.comparison, made.snapshot
    lines = [f"{snapshot.cell}: {comparison.outcome}"]
    lines += [
        f"  {name:<18} {'same' if comparison.levels[key] else 'differs'}" for key, name in _LEVELS.items()
    ]
    lines.append(
        f"  {made.manifest}"
        + ("" if comparison.levels["manifest"] else f", was {snapshot.expected.manifest}")
    )
    if made.builder.name != snapshot.builder.name:
        lines.append(f"  built by {made.builder.name}, then by {snapshot.builder.name}")
    for title, source in made.elsewhere.items():
        lines.append(f"  not in the bundle, taken from {source}: {title}")
    lines += [f"  cause: {cause} ({count}): {why(cause)}" for cause, count in comparison.causes.items()]
    # What nothing explains comes first.
    shown = sorted(comparison.differences, key=lambda d: d.explained)
    lines += [f"  {line(one)}" for one in shown[:_SHOWN]]
    if len(shown) > _SHOWN:
        lines.append(f"  ... and {len(shown) - _SHOWN} more: --json shows all")
    return "\n".join(lines)
