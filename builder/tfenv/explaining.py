"""Why a combination runs or not, and which cells of a matrix come nearest to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from tfenv.compat.model import Finding, Query, Verdict
from tfenv.compat.subject import Known
from tfenv.compat.table import judge
from tfenv.versions import agrees, is_final, minor, order

if TYPE_CHECKING:
    from tfenv.model import Cell, Matrix

_SHOWN = 4


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer to a question.

    Args:
        asked: the question in words; cell: the cell that is meant, empty if none is.
        nearest: the names of cells that exist and come nearest.
    """

    asked: str
    verdict: Verdict
    cell: str = ""
    nearest: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The answer as data for JSON."""
        return {"asked": self.asked, "cell": self.cell, "nearest": self.nearest, **self.verdict.as_dict()}


def answer(query: Query, known: Known, matrix: Matrix | None = None, also: Iterable[Finding] = ()) -> Answer:
    """Judge a question: as a cell of the matrix where one is meant, else as the free combination it is.

    Args:
        also: findings of the file that the question was read from.
    """
    cell = _meant(query, matrix) if matrix else None
    if cell:
        of_cell = replace(
            query,
            tensorflow=cell.row.tensorflow,
            python=cell.python,
            base="",
            cuda=cell.cuda_set.cuda,
            cudnn=cell.cuda_set.cudnn,
            by_tfenv=True,
            allow_prerelease=True,
        )
        verdict = judge(of_cell, known, also)
        shown = () if verdict.outcome in ("runs", "limit") else _nearest(query, matrix, known, without=cell)
        return Answer(asked=in_words(of_cell), verdict=verdict, cell=cell.name, nearest=shown)
    own = (*also, *_refusals(query, matrix)) if matrix else tuple(also)
    asked = replace(query, base="") if matrix and _is_own_base(query.base, matrix) else query
    verdict = judge(asked, known, own)
    nearest = _nearest(query, matrix, known) if query.tensorflow or query.python else ()
    return Answer(asked=in_words(query), verdict=verdict, nearest=nearest)


def in_words(query: Query) -> str:
    """A question in words, e.g. ``TensorFlow 2.18, CUDA 12.2, RTX 5090, driver 535.104``."""
    parts = (
        ("TensorFlow ", query.tensorflow),
        ("Python ", query.python),
        ("CUDA ", query.cuda),
        ("cuDNN ", query.cudnn),
        ("on ", query.base),
        ("CUDA from ", query.cuda_source),
        ("Python from ", query.python_source),
        ("", query.platform),
        ("", " and ".join(query.gpus)),
        ("driver ", query.driver),
    )
    return ", ".join(head + value for head, value in parts if value) or "nothing that is known"


def _meant(query: Query, matrix: Matrix) -> Cell | None:
    """The cell that a question means: nothing in it is foreign to the matrix, and all fits one cell."""
    if query.cuda_source or query.python_source or query.extra or query.platform or not query.tensorflow:
        return None
    fitting = [cell for cell in matrix.cells if _fits(query, cell)]
    return max(fitting, key=_rank) if fitting else None


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


def _rank(cell: Cell) -> Any:
    row = cell.row
    return (
        order(row.tensorflow),
        cell.base.name == row.default_base,
        cell.python == row.default_python,
        order(cell.python),
    )


def _is_own_base(base: str, matrix: Matrix) -> bool:
    return any(base == own.name for own in matrix.bases)


def _refusals(query: Query, matrix: Matrix) -> tuple[Finding, ...]:
    """What the matrix itself says of a combination that it refuses."""
    from tfenv.cells import Name, parse_name

    if not query.tensorflow:
        return ()
    own = query.base if _is_own_base(query.base, matrix) else ""
    asked = Name(release=query.tensorflow, python=query.python, base=own, cuda=query.cuda, cudnn=query.cudnn)
    if query.base and not own:
        return ()
    whys: dict[str, list[str]] = {}
    for name, why in matrix.refused:
        parts = parse_name(name)
        if parts and asked.fits(parts):
            whys.setdefault(why, []).append(name)
    return tuple(
        Finding(
            code="matrix-refused",
            severity="refuse",
            message="matrix.yaml refuses "
            f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {why}",
            remedy="see all: tfenv list --refused",
        )
        for why, names in list(whys.items())[:_SHOWN]
    )


def _nearest(
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
        return (far + python, far, base, tuple(-part for part in _rank_numbers(cell)))

    best: dict[tuple[str, str], Cell] = {}
    for cell in sorted(matrix.cells, key=distance):
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


def _runs(cell: Cell, query: Query, known: Known) -> bool:
    asked = Query(
        tensorflow=cell.row.tensorflow,
        cuda=cell.cuda_set.cuda,
        cudnn=cell.cuda_set.cudnn,
        gpus=query.gpus,
        driver=query.driver,
        by_tfenv=True,
        allow_prerelease=True,
    )
    return judge(asked, known).outcome in ("runs", "limit")


def _rank_numbers(cell: Cell) -> tuple[int, ...]:
    return (
        int(cell.base.name == cell.row.default_base),
        int(cell.python == cell.row.default_python),
    )


def _number(python: str) -> int:
    return int(minor(python).split(".")[1])


def as_data(query: Query) -> dict[str, Any]:
    """A question as data, without what was not asked."""
    return {key: value for key, value in asdict(query).items() if value}
