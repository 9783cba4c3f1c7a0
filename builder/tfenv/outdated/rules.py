"""Everything that is looked at, in one table: what a rule is called, and the rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tfenv.model import Environment
from tfenv.outdated import bases, debian, endings, environments, releases, resolving, wheels
from tfenv.outdated.model import SEVERITIES, Finding, Subject
from tfenv.outdated.probes import World

Rule = Callable[[Subject, World], Iterable[Finding]]

#: Of each cell.
RULES: dict[str, Rule] = {
    "a lock": resolving.locked,
    "a later patch release": releases.newer_patch,
    "the row's release": releases.vanished_release,
    "the locked wheels": wheels.locked_wheels,
    "newer packages": wheels.newer_packages,
    "the Debian packages": debian.debian_packages,
    "the base image": bases.base_image,
    "the base image's end": bases.deletion,
    "the Python's end": endings.end_of_python,
    "the system's end": endings.end_of_system,
    "the provider's Python": resolving.interpreter,
    "resolving": resolving.resolves,
}
#: Of each environment of a team. What its row brings is told of the row.
ENVIRONMENT_RULES: dict[str, Rule] = {
    "a lock": resolving.locked,
    "what it stands on": environments.behind,
    "the locked wheels": wheels.locked_wheels,
    "newer packages": environments.newer_packages,
    "the Debian packages": debian.debian_packages,
    "resolving": environments.resolves,
}
#: Of the matrix as a whole.
MATRIX_RULES: dict[str, Callable[[World], Iterable[Finding]]] = {
    "a later minor release": releases.newer_minor,
}


def findings(subjects: Iterable[Subject], world: World) -> tuple[Finding, ...]:
    """All findings, the worst first, those of one kind together."""
    found = [*_of_matrix(world), *(f for s in subjects for rule in rules_of(s) for f in rule(s, world))]
    return tuple(sorted(found, key=lambda f: (SEVERITIES.index(f.severity), f.kind, f.message)))


def rules_of(subject: Subject) -> Iterable[Rule]:
    """The rules that hold for a subject."""
    return (ENVIRONMENT_RULES if isinstance(subject.cell, Environment) else RULES).values()


def _of_matrix(world: World) -> Iterator[Finding]:
    for rule in MATRIX_RULES.values():
        yield from rule(world)
