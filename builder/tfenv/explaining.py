"""Why a combination runs or not, and which cells of a matrix come nearest to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from tfenv import nvidia_images
from tfenv.compat.model import Finding, Query, Verdict
from tfenv.compat.subject import Known
from tfenv.compat.table import judge
from tfenv.versions import agrees, is_final, minor, order

if TYPE_CHECKING:
    from tfenv.model import Cell, Matrix

_SHOWN = 4
NOTHING = "nothing that is known"


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A cell that runs where no release was named, with what limits it there.

    Args:
        tag: its shortest name; limits: codes of findings such as ``jit-at-first-use``.
    """

    cell: str
    tag: str
    limits: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer to a question.

    Args:
        asked: the question in words; cell: the cell that is meant, empty if none is.
        nearest: the names of cells that exist and come nearest.
        other_driver: the nearest cells run with another driver only than the one that was named.
        choices: where no release was named: the best cell of each release that runs, newest first.
        again: the command that tells more of the first one that has a limit.
    """

    asked: str
    verdict: Verdict
    cell: str = ""
    nearest: tuple[str, ...] = ()
    other_driver: bool = False
    choices: tuple[Choice, ...] = ()
    again: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The answer as data for JSON."""
        own = {key: value for key, value in asdict(self).items() if key != "verdict"}
        return {**own, **self.verdict.as_dict()}


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
        told = Answer(asked=in_words(of_cell), verdict=verdict, cell=cell.name)
        return (
            told if verdict.outcome in ("runs", "limit") else _with_nearest(told, query, matrix, known, cell)
        )
    if query.base and not query.tensorflow:
        query = replace(query, tensorflow=nvidia_images.parse(query.base).tensorflow)
    own = (*also, *_refusals(query, matrix)) if matrix else tuple(also)
    asked = replace(query, base="") if matrix and _is_own_base(query.base, matrix) else query
    told = Answer(asked=in_words(query), verdict=judge(asked, known, own))
    if matrix and _asks_which(query):
        return _with_choices(told, query, matrix, known, own)
    return _with_nearest(told, query, matrix, known) if query.tensorflow or query.python else told


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
    return ", ".join(head + value for head, value in parts if value) or NOTHING


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


def _asks_which(query: Query) -> bool:
    """Whether a GPU, a driver or a Python is named, and the release is what is asked for."""
    return bool(query.gpus or query.driver or query.python) and not (
        query.tensorflow or query.extra or query.platform or query.cuda_source or query.python_source
    )


def _with_choices(
    told: Answer, query: Query, matrix: Matrix, known: Known, own: tuple[Finding, ...]
) -> Answer:
    """The answer with the cells that run; refused where there is none, unless it cannot be told."""
    if told.verdict.outcome in ("refused", "unknown"):
        return told
    choices = _choices(query, matrix, known)
    if choices:
        limited = next((choice.tag for choice in choices if choice.limits), "")
        return replace(told, choices=choices, again=again(query, limited) if limited else "")
    none = Finding(
        code="no-cell",
        severity="refuse",
        message=f"no cell of matrix.yaml runs with {told.asked}",
        remedy=f"ask for one, to see why: {again(query, 'latest')}",
    )
    return replace(told, verdict=judge(query, known, (*own, none)))


def _choices(query: Query, matrix: Matrix, known: Known) -> tuple[Choice, ...]:
    """The best cell of each release that runs, newest first."""
    from tfenv.tags import all_aliases

    names = all_aliases(matrix)
    found: dict[str, Choice] = {}
    for cell in sorted(matrix.cells, key=_rank, reverse=True):
        release = cell.row.tensorflow
        if release in found or not _fits(replace(query, tensorflow=release), cell):
            continue
        verdict = judge(_question(cell, query), known)
        if verdict.outcome in ("runs", "limit"):
            limits = dict.fromkeys(one.code for one in verdict.findings if one.severity == "limit")
            found[release] = Choice(cell=cell.name, tag=min(names[cell.name], key=len), limits=tuple(limits))
    return tuple(found.values())


def _with_nearest(
    told: Answer, query: Query, matrix: Matrix | None, known: Known, without: Cell | None = None
) -> Answer:
    """The answer with the nearest cells: those that run, else those that would with another driver."""
    nearest = _nearest(query, matrix, known, without)
    if nearest or not query.driver or not query.gpus:
        return replace(told, nearest=nearest)
    others = _nearest(replace(query, driver=""), matrix, known, without)
    return replace(told, nearest=others, other_driver=bool(others))


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
    cells = (parse_name(cell.name) for cell in matrix.cells)
    if any(
        cell is not None and asked.fits(cell) for cell in cells
    ):  # only some of what is meant is refused, as on one base of several
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
        return (far + python, far, base)

    best: dict[tuple[str, str], Cell] = {}
    for cell in sorted(
        sorted(matrix.cells, key=_rank, reverse=True), key=distance
    ):  # of equals the best first
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
    return judge(_question(cell, query), known).outcome in ("runs", "limit")


def again(query: Query, name: str) -> str:
    """The command that asks the same of a cell, as it has to be typed."""
    import shlex

    options = [*(("--gpu", gpu) for gpu in query.gpus), ("--driver", query.driver)]
    if name == "latest":
        options += [("--python", query.python), ("--base", query.base)]
    asked = [word for option, value in options if value for word in (option, value)]
    return shlex.join(["tfenv", "explain", name, *asked])


def _question(cell: Cell, query: Query) -> Query:
    """Whether a cell runs with what a question says of GPU and driver."""
    return Query(
        tensorflow=cell.row.tensorflow,
        cuda=cell.cuda_set.cuda,
        cudnn=cell.cuda_set.cudnn,
        gpus=query.gpus,
        driver=query.driver,
        by_tfenv=True,
        allow_prerelease=True,
    )


def _number(python: str) -> int:
    return int(minor(python).split(".")[1])


def as_data(query: Query) -> dict[str, Any]:
    """A question as data, without what was not asked."""
    return {key: value for key, value in asdict(query).items() if value}
