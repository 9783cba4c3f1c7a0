"""Why a combination runs or not, in a matrix and beside it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from tfenv import candidates, nvidia_images
from tfenv.candidates import Choice
from tfenv.compat.model import Finding, Query, Verdict
from tfenv.compat.subject import Known
from tfenv.compat.table import judge

if TYPE_CHECKING:
    from tfenv.model import Cell, Matrix
    from tfenv.proven import VerifiedOn

_SHOWN = 4
NOTHING = "nothing that is known"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer to a question.

    Args:
        asked: the question in words; cell: the cell that is meant, empty if none is.
        nearest: the names of cells that exist and come nearest.
        other_driver: the nearest cells run with another driver only than the one that was named.
        choices: where no release was named: the best cell of each release that runs, newest first.
        verified: where the cell that is meant passed on such a GPU; empty if nobody has tried.
        instead: another cell of the same release that did, where that one is not known to.
        again: the command that tells more of the first one that has a limit.
    """

    asked: str
    verdict: Verdict
    cell: str = ""
    nearest: tuple[str, ...] = ()
    other_driver: bool = False
    choices: tuple[Choice, ...] = ()
    verified: str = ""
    instead: Choice | None = None
    again: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The answer as data for JSON."""
        own = {key: value for key, value in asdict(self).items() if key != "verdict"}
        return {**own, **self.verdict.as_dict()}


def answer(
    query: Query,
    known: Known,
    matrix: Matrix | None = None,
    also: Iterable[Finding] = (),
    verified_on: VerifiedOn | None = None,
) -> Answer:
    """Judge a question: as a cell of the matrix where one is meant, else as the free combination it is.

    Args:
        also: findings of the file that the question was read from.
        verified_on: tells where a cell was verified; None where nobody can tell.
    """
    cell = candidates.meant(query, matrix) if matrix else None
    if matrix and cell:
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
        if verdict.outcome not in ("runs", "limit"):
            return _with_nearest(told, query, matrix, known, cell)
        if verified_on is None:
            return told
        verified, instead = candidates.tried(cell, query, matrix, known, verified_on)
        return replace(told, verified=verified, instead=instead)
    if query.base and not query.tensorflow:
        query = replace(query, tensorflow=nvidia_images.parse(query.base).tensorflow)
    own = (*also, *_refusals(query, matrix)) if matrix else tuple(also)
    asked = replace(query, base="") if matrix and _is_own_base(query.base, matrix) else query
    told = Answer(asked=in_words(query), verdict=judge(asked, known, own))
    if matrix and _asks_which(query):
        return _with_choices(told, query, matrix, known, own, verified_on)
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


def _asks_which(query: Query) -> bool:
    """Whether a GPU, a driver or a Python is named, and the release is what is asked for."""
    return bool(query.gpus or query.driver or query.python) and not (
        query.tensorflow or query.extra or query.platform or query.cuda_source or query.python_source
    )


def _again(query: Query, name: str) -> str:
    """The command that asks the same of a cell, as it has to be typed."""
    options = [*(("--gpu", gpu) for gpu in query.gpus), ("--driver", query.driver)]
    if name == "latest":
        options += [("--python", query.python), ("--base", query.base)]
    asked = [word for option, value in options if value for word in (option, value)]
    return shlex.join(["tfenv", "explain", name, *asked])


def _with_choices(
    told: Answer,
    query: Query,
    matrix: Matrix,
    known: Known,
    own: tuple[Finding, ...],
    verified_on: VerifiedOn | None,
) -> Answer:
    """The answer with the cells that run; refused where there is none, unless it cannot be told."""
    if told.verdict.outcome in ("refused", "unknown"):
        return told
    choices = candidates.running(query, matrix, known, verified_on)
    if choices:
        limited = next((choice.tag for choice in choices if choice.limits), "")
        return replace(told, choices=choices, again=_again(query, limited) if limited else "")
    none = Finding(
        code="no-cell",
        severity="refuse",
        message=f"no cell of matrix.yaml runs with {told.asked}",
        remedy=f"ask for one, to see why: {_again(query, 'latest')}",
    )
    return replace(told, verdict=judge(query, known, (*own, none)))


def _with_nearest(
    told: Answer, query: Query, matrix: Matrix | None, known: Known, without: Cell | None = None
) -> Answer:
    """The answer with the nearest cells: those that run, else those that would with another driver."""
    nearest = candidates.nearest(query, matrix, known, without)
    if nearest or not query.driver or not query.gpus:
        return replace(told, nearest=nearest)
    others = candidates.nearest(replace(query, driver=""), matrix, known, without)
    return replace(told, nearest=others, other_driver=bool(others))


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
