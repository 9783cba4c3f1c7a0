"""Which releases of the matrix run on a host's GPUs and driver, which with a limit, which not and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Literal

from tfenv.versions import is_final, order

if TYPE_CHECKING:
    from tfenv.compat.model import Query, Verdict
    from tfenv.compat.subject import Known
    from tfenv.model import Cell, Matrix
    from tfenv.proven import VerifiedOn

State = Literal["runs", "limit", "refused", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A release on this host.

    Args:
        cell: the best cell of it; tag: its shortest name.
        codes: of what limits or refuses it; why: the same in sentences; remedies: what to do.
        verified: where it passed on such a GPU; empty if nobody has tried.
    """

    tensorflow: str
    cell: str
    tag: str
    state: State
    codes: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    verified: str = ""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """All releases, newest first.

    Args:
        gpus: as they were asked about; empty where no GPU is known, and then nothing is judged.
        driver: its version; empty where there is none: then what is said is of one that is new enough.
        best: the tag of the best choice; empty if nothing runs.
        needed: the lowest driver for the best choice, where none is installed.
    """

    gpus: tuple[str, ...] = ()
    driver: str = ""
    rows: tuple[Row, ...] = ()
    best: str = ""
    needed: str = ""


def question(values: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """The GPUs, by names that are known or by compute capability, and the driver."""
    from tfenv import gpus

    names = [name for name in values.get("gpu_names", "").split("; ") if name]
    told = [one for one in values.get("gpu_capabilities", "").split(",") if one]
    found: list[str] = []
    for name in names:
        known = gpus.find(name)
        if known and (not told or known.capability in told):
            found.append(name)
        else:
            found += told[:1] if len(told) == 1 else told
    if not names:
        found = told or [one for one in values.get("pci_capabilities", "").split(",") if one]
    return tuple(dict.fromkeys(found)), values.get("driver_version", "")


def day(recorded: str) -> date | None:
    """The day of a recording: what has ended by then is judged as of then."""
    try:
        return date.fromisoformat(recorded)
    except ValueError:
        return None


def rows(
    values: Mapping[str, str], matrix: Matrix, known: Known, verified_on: VerifiedOn | None = None
) -> Rows:
    """Every release of the matrix on this host; none where no GPU is known, or no image can run.

    Args:
        verified_on: tells where a cell was verified; None where nobody can tell.
    """
    from tfenv.tags import all_aliases

    asked, driver = question(values)
    if not asked or values.get("x86") == "no" or values.get("jetson") == "yes":
        return Rows()
    names = all_aliases(matrix)
    found = [
        _row(cells, asked, driver, known, names, verified_on)
        for cells in sorted(
            _by_release(matrix), key=lambda cells: order(cells[0].row.tensorflow), reverse=True
        )
    ]
    best = _best(found)
    needed = _needed(best, matrix, asked) if best and not driver else ""
    return Rows(gpus=asked, driver=driver, rows=tuple(found), best=best.tag if best else "", needed=needed)


def judged(cell: Cell, values: Mapping[str, str], known: Known) -> Verdict:
    """What is to be said of one cell on this host."""
    asked, driver = question(values)
    return _judged(cell, asked, driver, known)


def _by_release(matrix: Matrix) -> Iterable[list[Cell]]:
    releases: dict[str, list[Cell]] = {}
    for cell in matrix.cells:
        releases.setdefault(cell.row.tensorflow, []).append(cell)
    return releases.values()


def _row(
    cells: list[Cell],
    gpus: tuple[str, ...],
    driver: str,
    known: Known,
    names: Mapping[str, tuple[str, ...]],
    verified_on: VerifiedOn | None,
) -> Row:
    """The best cell of a release: of those that run one that was verified, else the default one.

    What they have in libraries decides whether they do.
    """
    gravity = ("runs", "limit", "unknown", "refused")
    tried: dict[str, tuple[Cell, Verdict]] = {}
    cells = sorted(cells, key=lambda c: (c.base.name != c.row.default_base, c.python != c.row.default_python))
    for cell in cells:
        if cell.cuda_set.name not in tried:
            tried[cell.cuda_set.name] = (cell, _judged(cell, gpus, driver, known))
    cell, verdict = min(tried.values(), key=lambda pair: gravity.index(pair[1].outcome))
    where = ""
    if verified_on and verdict.outcome in ("runs", "limit"):
        alike = [one for one in cells if one.cuda_set.name == cell.cuda_set.name]
        told = ((one, verified_on(one, _capabilities(gpus))) for one in alike)
        cell, where = next(((one, on) for one, on in told if on), (cell, ""))
    wanted = {"limit": ("limit",), "refused": ("refuse",), "unknown": ("unknown",), "runs": ()}[
        verdict.outcome
    ]
    deciding = [finding for finding in verdict.findings if finding.severity in wanted]
    return Row(
        tensorflow=cell.row.tensorflow,
        cell=cell.name,
        tag=min(names[cell.name], key=len),
        state=verdict.outcome,
        codes=_unique(finding.code for finding in deciding),
        why=_unique(finding.message for finding in deciding),
        remedies=_unique(finding.remedy for finding in deciding if finding.remedy),
        verified=where,
    )


def _capabilities(names: tuple[str, ...]) -> frozenset[str]:
    from tfenv.gpus import find

    return frozenset(gpu.capability for name in names if (gpu := find(name)))


def _judged(cell: Cell, gpus: tuple[str, ...], driver: str, known: Known) -> Verdict:
    from tfenv.compat.table import judge

    return judge(_query(cell, gpus, driver), known)


def _query(cell: Cell, gpus: tuple[str, ...], driver: str) -> Query:
    from tfenv.compat.model import Query

    return Query(
        tensorflow=cell.row.tensorflow,
        cuda=cell.cuda_set.cuda,
        cudnn=cell.cuda_set.cudnn,
        gpus=gpus,
        driver=driver,
        by_tfenv=True,
        allow_prerelease=True,
    )


def _best(found: list[Row]) -> Row | None:
    """The newest final release that runs whole, else the newest of those with the fewest limits."""
    final = [row for row in found if is_final(row.tensorflow)]
    for state in ("runs", "limit"):
        there = [row for row in final if row.state == state]
        if there:
            return min(there, key=lambda row: len(row.codes))  # the first of equals: the newest
    return None


def _needed(best: Row, matrix: Matrix, gpus: tuple[str, ...]) -> str:
    from tfenv.errors import UsageError
    from tfenv.facts import driver_floor
    from tfenv.gpus import find

    cell = next(cell for cell in matrix.cells if cell.name == best.cell)
    known = [gpu for name in gpus if (gpu := find(name))]
    try:
        floors = driver_floor(best.tensorflow, cell.cuda_set.cuda)
    except UsageError:
        return ""
    lowest = [f.driver for f in floors if any(order(f.since) <= order(gpu.capability) for gpu in known)]
    lowest += [gpu.first_driver for gpu in known if gpu.first_driver]
    return max(lowest, key=order, default="")


def _unique(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


def grouped(found: tuple[Row, ...]) -> list[tuple[Row, ...]]:
    """Releases that follow each other and of which the same is to be said, together."""
    groups: list[tuple[Row, ...]] = []
    for row in found:
        if groups and (groups[-1][0].state, groups[-1][0].codes) == (row.state, row.codes):
            groups[-1] = (*groups[-1], row)
        else:
            groups.append((row,))
    return groups
