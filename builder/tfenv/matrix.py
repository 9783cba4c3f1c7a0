"""matrix.yaml -> Matrix: every combination of its rows is accepted, or refused with the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path

from . import facts
from .errors import UsageError
from .facts import Compiled
from .matrix_checks import CHECKS, Draft
from .model import Base, Cell, CudaSet, Matrix, Row, Rule
from .refusals import Combination, project, refusal
from .schema import BaseSpec, CudaSetSpec, FileRule, MatrixSpec, RowSpec, WheelRule
from .schema_errors import dotted, validate
from .versions import order
from .yamlfile import Document, Location, Problem, failure, read

#: Days after a release's upload in which wheels may still be locked: fixes of its dependencies.
GRACE = timedelta(days=7)

Lookup = Callable[[str], Compiled]


def load_matrix(path: Path, compiled: Lookup = facts.compiled) -> Matrix:
    """Read, check and expand a matrix.

    Args:
        compiled: what a release was compiled for; UsageError where that is not known.

    Raises:
        MatrixError: all problems of the file, each with line and column.
    """
    document = read(path)
    spec = validate(document)
    known = _facts_of(spec, compiled)
    problems = [
        Problem(*document.at(where), f"{dotted(where)}: {message}")
        for check in CHECKS
        for where, message in check(Draft(spec, known))
    ]
    if problems:
        raise failure(path, problems, remedy="correct these lines of matrix.yaml")
    return _expand(spec, known, document)


def _expand(spec: MatrixSpec, known: Mapping[str, Compiled | str], document: Document) -> Matrix:
    bases = {name: _base(name, base) for name, base in spec.bases.items()}
    cells: list[Cell] = []
    refused: list[tuple[str, str]] = []
    rows: list[Row] = []
    problems: list[Problem] = []
    for i, row in enumerate(spec.rows):
        accepted: list[tuple[str, str]] = []
        for base_name in row.bases:
            for python in row.pythons:
                of = Combination(
                    row=row,
                    python=python,
                    base_name=base_name,
                    base=spec.bases[base_name],
                    requirements=_requirements(row, spec.bases[base_name]),
                    facts=known[row.tensorflow],
                    exclude=tuple(spec.exclude),
                )
                if why := refusal(of):
                    name = f"{row.tensorflow}-{row.cuda_set}-py{python}-{base_name}"
                    refused.append((name, why))
                else:
                    accepted.append((base_name, python))
        truth = known[row.tensorflow]
        if not accepted or isinstance(truth, str):
            continue
        base, python = _default(spec, row, accepted)
        if problem := _broken_default(row, i, base, python, document):
            problems.append(problem)
        made = {
            source: _row(spec, row, truth, base, python, source)
            for source in {spec.bases[name].cuda_from: name for name, _ in accepted}
        }
        rows.append(made[spec.bases[base].cuda_from])
        cells.extend(
            Cell(row=made[bases[name].cuda_from], python=version, base=bases[name])
            for name, version in accepted
        )
    if problems:
        raise failure(document.path, problems, remedy="name a default that exists, or none")
    return Matrix(
        repository=spec.repository,
        cells=tuple(cells),
        refused=tuple(refused),
        bases=tuple(bases.values()),
        rows=tuple(rows),
    )


def _default(spec: MatrixSpec, row: RowSpec, accepted: list[tuple[str, str]]) -> tuple[str, str]:
    """The base and Python of a row's short tags: as asked if accepted, else the highest Python."""
    bases = [base for base, _ in accepted]
    wanted_base = row.default_base or spec.defaults.base
    base = wanted_base if wanted_base in bases else bases[0]
    pythons = [python for name, python in accepted if name == base]
    wanted = row.default_python or spec.defaults.python
    return base, wanted if wanted in pythons else max(pythons, key=order)


def _broken_default(row: RowSpec, index: int, base: str, python: str, document: Document) -> Problem | None:
    for key, wanted, given in (
        ("default_base", row.default_base, base),
        ("default_python", row.default_python, python),
    ):
        if wanted and wanted != given:
            where: Location = ("rows", index, key)
            message = f'found "{wanted}", of which no cell is accepted; "{given}" would do'
            return Problem(*document.at(where), f"{dotted(where)}: {message}")
    return None


def _row(spec: MatrixSpec, row: RowSpec, truth: Compiled, base: str, python: str, source: str) -> Row:
    on_base = next(b for b in row.bases if spec.bases[b].cuda_from == source)
    return Row(
        tensorflow=row.tensorflow,
        cuda_set=_cuda_set(spec.cuda_sets[row.cuda_set]),
        pythons=tuple(row.pythons),
        bases=tuple(row.bases),
        default_base=base,
        default_python=python,
        exclude_newer=row.exclude_newer or _near(truth.released),
        requirements=_requirements(row, spec.bases[on_base]),
        trim=_rules([*spec.trim, *row.trim]),
        keep=_rules(row.keep),
    )


def _base(name: str, spec: BaseSpec) -> Base:
    return Base(
        name=name,
        kind=spec.kind,
        suite=spec.suite,
        pythons=tuple(spec.pythons),
        cuda_from=spec.cuda_from,
        packages=tuple(spec.packages),
        epoch=int(_instant(spec.epoch).timestamp()),
    )


def _cuda_set(spec: CudaSetSpec) -> CudaSet:
    return CudaSet(
        cuda=spec.cuda,
        cudnn=spec.cudnn,
        epoch=int(_instant(spec.epoch).timestamp()),
        without=_rules(spec.without),
    )


def _rules(specs: list[FileRule] | list[WheelRule]) -> tuple[Rule, ...]:
    return tuple(Rule(what=spec.what, why=spec.why) for spec in specs)


def _requirements(row: RowSpec, base: BaseSpec) -> tuple[str, ...]:
    """What a row asks for on a base: a CUDA wheel takes the place of its namesake."""
    if base.cuda_from != "wheels":
        return tuple(row.requirements)
    instead = {project(text): text for text in row.cuda_wheels}
    kept = [instead.pop(project(text), text) for text in row.requirements]
    return (*kept, *instead.values())


def _facts_of(spec: MatrixSpec, compiled: Lookup) -> Mapping[str, Compiled | str]:
    known: dict[str, Compiled | str] = {}
    for row in spec.rows:
        try:
            known[row.tensorflow] = compiled(row.tensorflow)
        except UsageError as error:
            known[row.tensorflow] = f"{error.message}; {error.remedy}"
    return known


def _instant(time: str) -> datetime:
    return datetime.fromisoformat(time.removesuffix("Z") + "+00:00")


def _near(released: str) -> str:
    day = _instant(released).astimezone(timezone.utc).date() + timedelta(days=1) + GRACE
    return f"{day.isoformat()}T00:00:00Z"
