"""matrix.yaml's ``environments`` -> Environment: each with the cell that it extends."""

from __future__ import annotations

from collections.abc import Iterator

from tfenv.cells import resolve
from tfenv.errors import UsageError
from tfenv.model import Environment, Matrix
from tfenv.refusals import project
from tfenv.schema import EnvironmentSpec, MatrixSpec
from tfenv.schema_errors import dotted
from tfenv.yamlfile import OF_KEY, Document, Location, Problem, failure

from .extras import extras
from .names import wrong_name

_OF_THE_ROW = ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly", "pip")


def environments(spec: MatrixSpec, matrix: Matrix, document: Document) -> tuple[Environment, ...]:
    """The team's environments.

    Raises:
        MatrixError: all that is wrong with them, each with line and column.
    """
    made, problems = [], []
    for name, own in spec.environments.items():
        at: Location = ("environments", name)
        wrong = [(at + where, message) for where, message in _wrong(name, own)]
        try:
            cell = resolve(matrix, own.start)
        except UsageError as error:
            wrong.append(((*at, "from"), f"found no cell: {error.message}; {error.remedy}"))
        problems += [Problem(*document.at(where), f"{dotted(where)}: {why}") for where, why in wrong]
        if wrong:
            continue
        chosen = [extras()[extra] for extra in own.extras]
        made.append(
            Environment(
                **vars(cell),
                title=name,
                asked=_once(own.requirements, *(extra.requirements for extra in chosen)),
                apt=_once(own.apt, *(extra.debian(cell) for extra in chosen)),
                extras=tuple(own.extras),
                exclude_newer=own.exclude_newer,
            )
        )
    if problems:
        raise failure(document.path, problems, remedy="correct these lines of matrix.yaml")
    return tuple(made)


def _wrong(name: str, own: EnvironmentSpec) -> Iterator[tuple[Location, str]]:
    if why := wrong_name(name):
        yield (OF_KEY,), f'found the name "{name}"; {why}'
    for n, extra in enumerate(own.extras):
        if extra not in extras():
            yield ("extras", n), f'found "{extra}"; expected one of {", ".join(extras())}'
    for n, text in enumerate(own.requirements):
        if project(text) in _OF_THE_ROW:
            yield ("requirements", n), f'found "{text}"; expected none: the cell says which one it is'
    if not (own.requirements or own.apt or own.extras):
        yield (OF_KEY,), "found nothing that it adds; expected requirements, apt or extras"


def _once(*lists: list[str] | tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for items in lists for item in items))
