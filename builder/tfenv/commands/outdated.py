"""``tfenv outdated``"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from tfenv.commands._common import cells_arguments, emit, json_option
from tfenv.errors import EXIT_FAILED
from tfenv.outdated.model import SEVERITIES

if TYPE_CHECKING:
    from tfenv.console import Console
    from tfenv.outdated import Finding, Result, Subject, Unasked
    from tfenv.workspace import Workspace

_SHOWN = 4  # details of a finding on its line; the JSON has all


@click.command("outdated")
@cells_arguments
@click.option("--resolve", is_flag=True, help="Also resolve the cells again: does each still resolve?")
@json_option
def command(cells: tuple[str, ...], every: bool, resolve: bool, as_json: bool) -> int:
    """Compare locks with what the index, the registry, the mirrors and end-of-life tables say today.

    \b
    urgent  the lock can no longer be built as it is: a wheel vanished, a base is gone
    act     something should be changed: a wheel was withdrawn, a security update, a new patch release,
            the row of a team's environment has moved on
    info    good to know; what is pinned on purpose stays

    A team's environment is told with the row that it stands on.

    Exit codes: 0 nothing to do, 1 something to do, 3 nothing found, but not everything could be asked.
    """
    from datetime import datetime, timezone

    from tfenv.console import Console
    from tfenv.outdated import look
    from tfenv.outdated.host import host_probes
    from tfenv.workspace import here_or_checkout

    console = Console()
    workspace = here_or_checkout(console.note)
    subjects, damaged = _subjects(workspace, cells, every, console, as_json=as_json)
    probes = host_probes(os.environ, resolve=resolve)
    today = datetime.now(timezone.utc).date()
    result = look(subjects, workspace.matrix, probes, today, _offered(workspace))
    for gap in _grouped(result.unasked):
        console.note(gap)
    emit(_plain(result), as_json=as_json, text=_text(result, len(subjects)))
    return EXIT_FAILED if damaged else result.exit_code


def _offered(workspace: Workspace) -> tuple[str, ...] | None:
    """The releases of tfenv's own matrix, for a team's; None where it is that one."""
    from tfenv import resources
    from tfenv.matrix_cache import cached_matrix

    own = resources.own_matrix()
    if own.resolve() == workspace.matrix_path.resolve():
        return None
    return tuple(row.tensorflow for row in cached_matrix(own, workspace.memo).rows)


def _subjects(
    workspace: Workspace, names: tuple[str, ...], every: bool, console: Console, *, as_json: bool
) -> tuple[list[Subject], bool]:
    """The cells with their locks, environments with their rows, and whether a lock could not be read."""
    from tfenv.commands import _environments
    from tfenv.commands._common import tell
    from tfenv.errors import TfenvError
    from tfenv.model import Environment
    from tfenv.outdated import Subject

    found: list[Subject] = []
    damaged = False
    for cell in workspace.cells(names, every=every):
        try:
            if isinstance(cell, Environment):
                there = {subject.cell.name for subject in found}
                both = _environments.subjects(workspace, cell)
                found += [subject for subject in both if subject.cell.name not in there]
            else:
                found.append(Subject(cell=cell, lock=workspace.find_lock(cell)))
        except TfenvError as error:
            damaged = True
            tell(error, console, as_json=as_json, cell=cell.name)
    return found, damaged


def _plain(result: Result) -> dict[str, object]:
    from dataclasses import asdict

    return {
        "findings": [asdict(finding) for finding in result.findings],
        "unasked": [asdict(gap) for gap in result.unasked],
        "asked": result.asked,
        "exit_code": result.exit_code,
    }


def _text(result: Result, cells: int) -> str:
    """One line for what is the same in many cells, and below it what to do."""
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in result.findings:
        remedy = finding.remedy.replace(finding.cell, "CELL") if finding.cell else finding.remedy
        groups.setdefault((finding.severity, finding.message, remedy), []).append(finding)
    lines = []
    for (severity, message, remedy), found in groups.items():
        lines.append(f"{severity:6}  {_of([finding.cell for finding in found])}{message}")
        if len(found) == 1:
            lines += _details(found[0])
        lines.append(f"        {found[0].remedy if len(found) == 1 else remedy}")
    count = Counter(finding.severity for finding in result.findings)
    lines.append(
        f"cells: {cells}, questions: {result.asked}, without an answer: {len(result.unasked)}, "
        + ", ".join(f"{severity}: {count[severity]}" for severity in SEVERITIES)
    )
    return "\n".join(lines)


def _details(finding: Finding) -> list[str]:
    """What is behind a summary, where the message does not hold it already."""
    if not finding.details or finding.details[0] in finding.message:
        return []
    more = len(finding.details) - _SHOWN
    return [f"        {', '.join(finding.details[:_SHOWN])}{f' and {more} more' if more > 0 else ''}"]


def _of(names: list[str]) -> str:
    if names == [""]:
        return ""
    return f"{names[0]}: " if len(names) == 1 else f"{len(names)} cells, e.g. {names[0]}: "


def _grouped(gaps: Iterable[Unasked]) -> list[str]:
    """One line for each host, however many questions it left open; all of them are in the JSON."""
    hosts: dict[str, list[Unasked]] = {}
    for gap in gaps:
        hosts.setdefault(gap.host, []).append(gap)
    lines = []
    for host, of in hosts.items():
        more = f" and {len(of) - 1} more" if len(of) > 1 else ""
        lines.append(f"{host} could not be asked for {of[0].what}{more}: {of[0].why}")
    return lines
