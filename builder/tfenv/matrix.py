"""matrix.yaml -> Matrix: every combination of its rows is accepted, or refused with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta, timezone
from pathlib import Path

from . import facts
from .errors import UsageError
from .facts import Compiled
from .matrix_checks import CHECKS, Draft
from .model import Base, Cell, CudaFrom, CudaSet, Link, Matrix, Row, Rule
from .refusals import Combination, cuda_source, own_pythons, refusal
from .schema import CudaSetSpec, DebianSpec, FileRule, MatrixSpec, NvidiaSpec, RowSpec, WheelRule
from .schema_errors import dotted, validate
from .team.expand import environments
from .times import instant, unix
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
    sets = {name: _cuda_set(cuda_set) for name, cuda_set in spec.cuda_sets.items()}
    cells: list[Cell] = []
    refused: list[tuple[str, str]] = []
    rows: list[Row] = []
    problems: list[Problem] = []
    for i, row in enumerate(spec.rows):
        accepted: list[tuple[str, str]] = []
        sources: dict[str, CudaFrom] = {}
        for base_name, python in _offered(spec, row):
            set_name = row.cuda_set_on.get(base_name, row.cuda_set)
            base, cuda_set = spec.bases[base_name], spec.cuda_sets[set_name]
            of = Combination(
                row=row,
                python=python,
                base_name=base_name,
                base=base,
                cuda_set=cuda_set,
                cuda_from=(source := cuda_source(cuda_set, base_name, base)),
                facts=known[row.tensorflow],
                exclude=tuple(spec.exclude),
            )
            if why := refusal(of):
                refused.append((f"{row.tensorflow}-{set_name}-py{python}-{base_name}", why))
            else:
                assert source is not None  # else it was refused
                sources[base_name] = source
                accepted.append((base_name, python))
        truth = known[row.tensorflow]
        if not accepted or isinstance(truth, str):
            continue
        default_base, default_python = _default(spec, row, accepted)
        if problem := _broken_default(row, i, default_base, default_python, document):
            problems.append(problem)
        made = _row(spec, row, truth, default_base, default_python)
        rows.append(made)
        cells.extend(
            Cell(
                row=made,
                python=version,
                base=bases[name],
                cuda_set=sets[row.cuda_set_on.get(name, row.cuda_set)],
                cuda_from=sources[name],
            )
            for name, version in accepted
        )
    if problems:
        raise failure(document.path, problems, remedy="name a default that exists, or none")
    matrix = Matrix(
        repository=spec.repository,
        cells=tuple(cells),
        refused=tuple(refused),
        bases=tuple(bases.values()),
        rows=tuple(rows),
    )
    return replace(matrix, environments=environments(spec, matrix, document))


def _offered(spec: MatrixSpec, row: RowSpec) -> Iterator[tuple[str, str]]:
    """Base and Python of a row's combinations.

    A Python that a base does not offer is no combination where another base of that kind offers it.
    """

    def offers(name: str, python: str) -> bool:
        base = spec.bases[name]
        return python in own_pythons(base) or python in base.provided_pythons

    for name in row.bases:
        same = [other for other in row.bases if spec.bases[other].kind == spec.bases[name].kind]
        for python in row.pythons:
            if offers(name, python) or (same[0] == name and not any(offers(o, python) for o in same)):
                yield name, python


def _default(spec: MatrixSpec, row: RowSpec, accepted: list[tuple[str, str]]) -> tuple[str, str]:
    """The base and Python of a row's short tags: as asked if accepted, else the highest Python.

    One that the base brings itself comes before any that a provider does.
    """
    bases = [base for base, _ in accepted]
    wanted_base = row.default_base or spec.defaults.base
    base = wanted_base if wanted_base in bases else bases[0]
    pythons = [python for name, python in accepted if name == base]
    own = [python for python in pythons if python in own_pythons(spec.bases[base])]
    wanted = row.default_python or spec.defaults.python
    return base, wanted if wanted in pythons else max(own or pythons, key=order)


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


def _row(spec: MatrixSpec, row: RowSpec, truth: Compiled, base: str, python: str) -> Row:
    return Row(
        tensorflow=row.tensorflow,
        pythons=tuple(row.pythons),
        bases=tuple(row.bases),
        default_base=base,
        default_python=python,
        exclude_newer=row.exclude_newer or _near(truth.released),
        requirements=(f"tensorflow=={row.tensorflow}", "pip", *row.requirements),
        other_libraries=row.other_libraries or "",
        from_source=_rules(row.from_source),
        trim=_rules([*spec.trim, *row.trim]),
        keep=_rules(row.keep),
    )


def _base(name: str, spec: DebianSpec | NvidiaSpec) -> Base:
    provided = tuple(spec.provided_pythons)
    if isinstance(spec, NvidiaSpec):
        return Base(name=name, kind=spec.kind, glibc=spec.glibc, provided_pythons=provided)
    return Base(
        name=name,
        kind=spec.kind,
        suite=spec.suite,
        pythons=tuple((python, tuple(packages)) for python, packages in spec.pythons.items()),
        provided_pythons=provided,
        packages=tuple(spec.packages),
        epoch=unix(spec.epoch),
    )


def _cuda_set(spec: CudaSetSpec) -> CudaSet:
    return CudaSet(
        cuda=spec.cuda,
        cudnn=spec.cudnn,
        epoch=unix(spec.epoch),
        wheels=tuple(spec.wheels),
        images=tuple(spec.images.items()),
        tools=tuple(spec.tools),
        links=tuple(Link(name=link.name, target=link.target, why=link.why) for link in spec.links),
        without=_rules(spec.without),
    )


def _rules(specs: list[FileRule] | list[WheelRule]) -> tuple[Rule, ...]:
    return tuple(Rule(what=spec.what, why=spec.why) for spec in specs)


def _facts_of(spec: MatrixSpec, compiled: Lookup) -> Mapping[str, Compiled | str]:
    known: dict[str, Compiled | str] = {}
    for row in spec.rows:
        try:
            known[row.tensorflow] = compiled(row.tensorflow)
        except UsageError as error:
            known[row.tensorflow] = f"{error.message}; {error.remedy}"
    return known


def _near(released: str) -> str:
    day = instant(released).astimezone(timezone.utc).date() + timedelta(days=1) + GRACE
    return f"{day.isoformat()}T00:00:00Z"
