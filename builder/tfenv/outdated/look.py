"""Collect the questions that the locks raise, ask each once, and judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any

from tfenv.model import Matrix
from tfenv.outdated.asking import Question, ask_all
from tfenv.outdated.life import EndOfLife
from tfenv.outdated.model import Result, Subject, Unasked
from tfenv.outdated.probes import Answers, Probes, World
from tfenv.outdated.project import Project
from tfenv.outdated.releases import TENSORFLOW
from tfenv.outdated.rules import findings
from tfenv.outdated.wheels import without_hashes

#: Where an image without a registry in its name comes from.
_DEFAULT_REGISTRY = "docker.io"


@dataclass(frozen=True)
class _Key:
    """What a question is about: of a kind, one thing."""

    kind: str
    name: str


def look(
    subjects: Iterable[Subject],
    matrix: Matrix,
    probes: Probes,
    today: date,
    offered: tuple[str, ...] | None = None,
) -> Result:
    """Everything that is to be said of these cells today. Raises nothing for what cannot be asked.

    Args:
        offered: releases that tfenv's own matrix has rows of, where ``matrix`` is a team's.
    """
    subjects = tuple(subjects)
    questions = dict(_questions(subjects, probes))
    answered, unasked = ask_all(questions)
    answers = _answers(answered, probes)
    world = World(matrix=matrix, answers=answers, today=today, offered=offered)
    return Result(
        findings=findings(subjects, world),
        unasked=(*unasked, *_without_hashes(subjects, answers, probes)),
        asked=len(questions),
    )


def registry_of(image: str) -> str:
    """The registry that an image's name means: ``ghcr.io/a/b:c`` -> ``ghcr.io``."""
    first, slash, _ = image.partition("/")
    return first if slash and (set(first) & set(".:") or first == "localhost") else _DEFAULT_REGISTRY


def _questions(subjects: tuple[Subject, ...], probes: Probes) -> Iterator[tuple[_Key, Question[Any]]]:
    locks = [subject.lock for subject in subjects if subject.lock is not None]
    index = probes.hosts.get("index", "the package index")
    names = {TENSORFLOW} | {wheel.name for lock in locks for wheel in lock.wheels}
    for name in sorted(names):
        yield _Key("project", name), Question(f"the files of {name}", index, partial(probes.files, name))
    for suite in sorted({lock.suite for lock in locks if lock.debian}):
        wanted = sorted({p.name for lock in locks if lock.suite == suite for p in lock.debian})
        mirror = probes.hosts.get("debian", "the Debian mirror")
        ask = partial(probes.debian, suite, tuple(wanted))
        yield _Key("suite", suite), Question(f"the packages of {suite}", mirror, ask)
    for image in sorted({lock.base_image for lock in locks if lock.base_image}):
        yield (
            _Key("image", image),
            Question(f"the digest of {image}", registry_of(image), partial(probes.digest, image)),
        )
    yield _Key("life", ""), Question("end-of-life dates", "tfenv's own tables", probes.end_of_life)
    for subject in subjects if probes.resolve else ():
        if probes.resolve and subject.lock is not None:
            ask_resolver = partial(probes.resolve, subject.cell, subject.row or subject.lock)
            yield (
                _Key("cell", subject.cell.name),
                Question(f"what {subject.cell.name} resolves to", index, ask_resolver),
            )


def _answers(answered: Mapping[_Key, Any], probes: Probes) -> Answers:
    def of(kind: str) -> dict[str, Any]:
        return {key.name: answer for key, answer in answered.items() if key.kind == kind}

    return Answers(
        projects={name: Project(name, files) for name, files in of("project").items()},
        debian=of("suite"),
        digests=of("image"),
        resolved=of("cell"),
        life=of("life").get("", EndOfLife()),
        local=probes.local,
    )


def _without_hashes(subjects: tuple[Subject, ...], answers: Answers, probes: Probes) -> tuple[Unasked, ...]:
    """An index that tells no hashes has not answered whether a wheel is still the same."""
    wheels = {
        wheel.filename
        for subject in subjects
        if subject.lock is not None
        for wheel in without_hashes(subject.lock, dict(answers.projects))
    }
    return tuple(
        Unasked(
            what=f"whether {name} is the locked one",
            host=probes.hosts.get("index", "the package index"),
            why="it tells no sha256",
        )
        for name in sorted(wheels)
    )
