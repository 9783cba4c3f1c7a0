"""``tfenv doctor``"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfenv.commands._common import emit, json_option

if TYPE_CHECKING:
    from tfenv.console import Console
    from tfenv.doctor.evidence import Evidence
    from tfenv.doctor.judging import Verdict
    from tfenv.model import Cell, Matrix
    from tfenv.workspace import Workspace


@click.command("doctor")
@click.argument("cell", required=False)
@click.option("--in", "inside", metavar="CELL|IMAGE", help="Look from within a container of it.")
@click.option("--deep", is_flag=True, help="With --in: also ask TensorFlow itself, which takes a while.")
@click.option("--try", "try_gpus", is_flag=True, help="Run `true` with --gpus all, in an image that is here.")
@click.option(
    "--record", type=click.Path(dir_okay=False, path_type=Path), help="Write what was seen, without names."
)
@click.option(
    "--replay",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Judge a recording instead of this host.",
)
@click.option("--offline", is_flag=True, help="Do not ask index, mirror and registry.")
@click.option(
    "--pack",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the part that runs in any image, as one file.",
)
@json_option
def command(
    cell: str | None,
    inside: str | None,
    deep: bool,
    try_gpus: bool,
    record: Path | None,
    replay: Path | None,
    offline: bool,
    pack: Path | None,
    as_json: bool,
) -> int:
    """Say why TensorFlow does not see a GPU here, from the bottom up, and which cells run.

    Nothing on the host is changed. With CELL, only that cell is judged. --record writes a file for a report,
    without serial numbers, host names, users, paths and addresses; --replay gives the same verdict from it.

    Exit codes: 0 ready, 1 something is broken (or CELL does not run here), 2 usage, 3 it could not be told,
    4 nothing is broken, and there is no GPU or no engine.
    """
    from tfenv.console import Console

    console = Console()
    _check(cell, inside, deep, try_gpus, record, replay)
    if pack:
        return _pack(pack, console)
    if inside:
        from tfenv.doctor.inside import doctor_in

        return doctor_in(inside, deep=deep, as_json=as_json, console=console)
    chosen = _cell(cell, console) if cell else None
    evidence = _evidence(replay, try_gpus=try_gpus, offline=offline)
    if try_gpus:
        from tfenv.doctor.collecting import told_of_try

        console.note(told_of_try(evidence))
    if record:
        _record(evidence, record, console)
    from tfenv.doctor.judging import judge
    from tfenv.doctor.reading import values

    seen = values(evidence)
    verdict = judge(seen)
    if chosen:
        return _tell_cell(chosen, seen, verdict, evidence.recorded, as_json=as_json)
    return _tell(seen, verdict, evidence.recorded, console, as_json=as_json)


def _check(
    cell: str | None, inside: str | None, deep: bool, try_gpus: bool, record: Path | None, replay: Path | None
) -> None:
    from tfenv.errors import UsageError

    if inside and (cell or record or replay or try_gpus):
        raise UsageError("--in goes with --deep and --json alone", remedy="type: tfenv doctor --in CELL")
    if deep and not inside:
        raise UsageError("--deep is of --in", remedy="type: tfenv doctor --in CELL --deep")
    if replay and (record or try_gpus):
        raise UsageError(
            "--replay looks at no host, so there is nothing to record or try", remedy="give it alone"
        )


def _evidence(replay: Path | None, *, try_gpus: bool, offline: bool) -> Evidence:
    from tfenv.doctor.evidence import RECORDING_MOST, NotARecordingError, load

    if replay is None:
        from tfenv.doctor.asking import ask
        from tfenv.doctor.collecting import look
        from tfenv.doctor.sources import Sources

        return look(Sources(), None if offline else ask, try_gpus=try_gpus)
    from tfenv.errors import UsageError
    from tfenv.files import read_text

    try:
        return load(read_text(replay, RECORDING_MOST))
    except (NotARecordingError, UsageError) as error:
        remedy = "name a file that `tfenv doctor --record FILE` wrote"
        raise UsageError(f"{replay} cannot be replayed: {error}", remedy=remedy) from None


def _record(evidence: Evidence, record: Path, console: Console) -> None:
    from tfenv.doctor.evidence import dump
    from tfenv.doctor.judging import judge
    from tfenv.doctor.reading import values
    from tfenv.doctor.scrub import of_this_host, scrubbed

    written = scrubbed(evidence, of_this_host())
    record.write_text(dump(written), encoding="utf-8")
    if [one.id for one in judge(values(written)).found] != [one.id for one in judge(values(evidence)).found]:
        console.warn(
            "a name of this machine stood for more than a name: the recording tells less than the host"
        )
    console.note(f"written to {record}: look through it before you give it away")


def _cells_of(console: Console) -> tuple[Workspace, Matrix] | None:
    """The workspace of this folder and its matrix; None where that cannot be read."""
    from tfenv.doctor.reading_only import matrix_of
    from tfenv.errors import UsageError
    from tfenv.workspace import here_or_checkout

    try:
        workspace = here_or_checkout(console.note)
        return workspace, matrix_of(workspace)
    except UsageError as error:
        console.note(f"no cells are judged: {error.message}")
        return None


def _tell(seen: dict[str, str], verdict: Verdict, recorded: str, console: Console, *, as_json: bool) -> int:
    from dataclasses import asdict

    from tfenv.doctor.rows import Rows, day, question, rows
    from tfenv.doctor.telling import text

    found = Rows()
    # Without a GPU there is nothing to ask, and the matrix takes its time to be read.
    if question(seen)[0] and (there := _cells_of(console)):
        from tfenv.compat.table import known
        from tfenv.proven import verified_on

        workspace, matrix = there
        found = rows(seen, matrix, known(day(recorded)), verified_on(workspace))
    data: dict[str, Any] = {**verdict.as_dict(), "code": verdict.code, "values": seen, "rows": asdict(found)}
    emit(data, as_json=as_json, text=text(verdict, found, why_no_rows=_why_no_rows(seen), fancy=_fancy()))
    return verdict.code


def _cell(name: str, console: Console) -> Cell:
    from tfenv.cells import resolve
    from tfenv.errors import UsageError

    if (there := _cells_of(console)) is None:
        remedy = "change to a folder that has one"
        raise UsageError(f"{name} cannot be judged without a matrix.yaml", remedy=remedy)
    return resolve(there[1], name)


def _tell_cell(cell: Cell, seen: dict[str, str], verdict: Verdict, recorded: str, *, as_json: bool) -> int:
    from tfenv.commands._common import worst
    from tfenv.compat.table import known
    from tfenv.doctor.rows import day, judged
    from tfenv.doctor.telling import of_cell

    of = judged(cell, seen, known(day(recorded)))
    data = {
        **verdict.as_dict(),
        "code": verdict.code,
        "values": seen,
        "cell": cell.name,
        "verdict": of.as_dict(),
    }
    emit(data, as_json=as_json, text=of_cell(cell.name, of, verdict, seen, fancy=_fancy()))
    return worst((verdict.code, {"refused": 1, "unknown": 3}.get(of.outcome, 0)))


def _why_no_rows(seen: dict[str, str]) -> str:
    if seen.get("x86") == "no" or seen.get("jetson") == "yes":
        return ""
    return (
        "every cell computes on the CPU here; which run on a GPU: tfenv explain --gpu NAME --driver VERSION"
    )


def _fancy() -> bool:
    try:
        "✔".encode(sys.stdout.encoding or "ascii")
    except (UnicodeError, LookupError):
        return False
    return os.environ.get("TERM") != "linux"


def _pack(path: Path, console: Console) -> int:
    from tfenv.doctor.inside import pack

    path.write_bytes(pack())
    console.note(
        f"written to {path}: run it in any image, e.g. docker run --rm --gpus all -v "
        f"FOLDER:/d:ro IMAGE python3 /d/{path.name}"
    )
    return 0
