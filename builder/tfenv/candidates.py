"""The cells of a matrix that a question means, those that run with what it says, and those nearest to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tfenv import gpus
from tfenv.compat.model import Query
from tfenv.compat.subject import Known
from tfenv.compat.table import judge
from tfenv.tags import all_aliases, rank
from tfenv.versions import agrees, is_final, minor, order

if TYPE_CHECKING:
    from tfenv.model import Cell, Matrix
    from tfenv.proven import VerifiedOn

_SHOWN = 4


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A cell that runs where no release was named, with what limits it there.

    Args:
        tag: its shortest name; limits: codes of findings such as ``jit-at-first-use``.
        verified: where it passed on such a GPU; empty if nobody has tried.
    """

    cell: str
    tag: str
    limits: tuple[str, ...] = ()
    verified: str = ""


def meant(query: Query, matrix: Matrix) -> Cell | None:
    """The cell that a question means: nothing in it is foreign to the matrix, and all fits one cell."""
    if query.cuda_source or query.python_source or query.extra or query.platform or not query.tensorflow:
        return None
    fitting = [cell for cell in matrix.cells if _fits(query, cell)]
    return max(fitting, key=rank) if fitting else None


def running(
    query: Query, matrix: Matrix, known: Known, verified_on: VerifiedOn | None = None
) -> tuple[Choice, ...]:
    """The best cell of each release that runs, newest first; of those with the same limits a verified one.

    Args:
        verified_on: tells where a cell was verified; None where nobody can tell.
    """
    names = all_aliases(matrix)
    found: dict[str, Choice] = {}
    capabilities = _capabilities(query)
    for cell in sorted(matrix.cells, key=rank, reverse=True):
        release = cell.row.tensorflow
        if not _fits(replace(query, tensorflow=release), cell):
            continue
        first = found.get(release)
        where = verified_on(cell, capabilities) if verified_on and not (first and first.verified) else ""
        if first and not where:
            continue
        verdict = judge(_question(cell, query), known)
        if verdict.outcome in ("runs", "limit"):
            limits = dict.fromkeys(one.code for one in verdict.findings if one.severity == "limit")
            tag, told = min(names[cell.name], key=len), tuple(limits)
            if first is None or first.limits == told:
                found[release] = Choice(cell=cell.name, tag=tag, limits=told, verified=where)
    return tuple(found.values())


def tried(
    cell: Cell, query: Query, matrix: Matrix, known: Known, verified_on: VerifiedOn
) -> tuple[str, Choice | None]:
    """Where a cell passed on such GPUs as a question names; else one of its release that did."""
    capabilities = _capabilities(query)
    if where := verified_on(cell, capabilities):
        return where, None
    of_release = [one for one in matrix.cells if one.row.tensorflow == cell.row.tensorflow]
    for one in sorted(of_release, key=rank, reverse=True):
        if (where := verified_on(one, capabilities)) and _runs(one, query, known):
            tag = min(all_aliases(matrix)[one.name], key=len)
            return "", Choice(cell=one.name, tag=tag, verified=where)
    return "", None


def nearest(
    query: Query, matrix: Matrix | None, known: Known, without: Cell | None = None
) -> tuple[str, ...]:
    """The cells that come nearest and run with what the question says of GPU and driver."""
    if matrix is None:
        return ()
    releases = sorted({minor(cell.row.tensorflow) for cell in matrix.cells}, key=order)
    wanted = minor(query.tensorflow) if query.tensorflow else releases[-1] if releases else "0"
    place = {release: index for index, release in enumerate(releases)}
    here = place.get(wanted, sum(order(release) < order(wanted) for release in releases))

    def distance(cell: Cell) -> Any:
        far = abs(place[minor(cell.row.tensorflow)] - here)
        python = abs(_number(cell.python) - _number(query.python)) if query.python else 0
        base = query.base not in ("", cell.base.name)
        # One release away is as far as one Python away: which of the two gives is for the user to say.
        return (far + python, far, base)

    best: dict[tuple[str, str], Cell] = {}
    # Of equals the best first: sorting keeps their order.
    for cell in sorted(sorted(matrix.cells, key=rank, reverse=True), key=distance):
        best.setdefault((cell.row.tensorflow, cell.python), cell)
    named = []
    for cell in best.values():
        if without is not None and cell.name == without.name:
            continue
        if (query.gpus or query.driver) and not _runs(cell, query, known):
            continue
        named.append(cell.name)
        if len(named) == _SHOWN:
            break
    return tuple(named)


def _fits(query: Query, cell: Cell) -> bool:
    return (
        _is_release(query.tensorflow, cell.row.tensorflow)
        and query.python in ("", cell.python)
        and query.base in ("", cell.base.name)
        and (not query.cuda or agrees(query.cuda, cell.cuda_set.cuda))
        and (not query.cudnn or agrees(query.cudnn, cell.cuda_set.cudnn))
    )


def _is_release(asked: str, release: str) -> bool:
    """Whether a release is meant: by its full name, or a final one by its minor release."""
    return asked == release or (asked == minor(release) and is_final(release))


def _runs(cell: Cell, query: Query, known: Known) -> bool:
    return judge(_question(cell, query), known).outcome in ("runs", "limit")


def _question(cell: Cell, query: Query) -> Query:
    """A cell as a question, with what another one says of GPU and driver."""
    return Query(
        tensorflow=cell.row.tensorflow,
        cuda=cell.cuda_set.cuda,
        cudnn=cell.cuda_set.cudnn,
        gpus=query.gpus,
        driver=query.driver,
        by_tfenv=True,
        allow_prerelease=True,
    )


def _capabilities(query: Query) -> frozenset[str]:
    return frozenset(gpu.capability for name in query.gpus if (gpu := gpus.find(name)))


def _number(python: str) -> int:
    return int(minor(python).split(".")[1])
