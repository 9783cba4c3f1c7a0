"""What can be asked of the world: callables, so that tests and offline machines bring their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from tfenv.model import Cell, Lock, Matrix, Wheel
from tfenv.outdated.life import EndOfLife
from tfenv.outdated.project import Project
from tfenv.simple_index import ProjectFile


@dataclass(frozen=True)
class Offer:
    """A version of a Debian package that a mirror has today, and in which archive."""

    version: str
    archive: Literal["debian", "debian-security"]


Offers = Mapping[str, tuple[Offer, ...]]


@dataclass(frozen=True)
class Refused:
    """A cell that its resolver refuses today, and the reason."""

    why: str


@dataclass(frozen=True, kw_only=True)
class Probes:
    """Each raises TfenvError or OSError where it gets no answer.

    Args:
        files: all files of a project on the user's package indexes.
        local: whether that very wheel lies in a folder of this machine that the user named (find-links).
        debian: (suite, package names) -> what the mirror offers today.
        digest: image with a tag -> the digest that its registry tells; empty where there is no such tag.
        end_of_life: the tables of last days.
        resolve: (cell, its lock) -> the wheels that it would get today; of an environment, with its row's
            lock, those that it would add to that. None where that is not to be asked.
        hosts: who answers ``index`` and ``debian``, for messages.
    """

    files: Callable[[str], tuple[ProjectFile, ...]]
    local: Callable[[Wheel], bool]
    debian: Callable[[str, tuple[str, ...]], Offers]
    digest: Callable[[str], str]
    end_of_life: Callable[[], EndOfLife]
    resolve: Callable[[Cell, Lock], tuple[Wheel, ...] | Refused] | None = None
    hosts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What was answered; a key that is missing was not.

    Args:
        projects: by name; debian: by suite; digests: by image; resolved: by cell; life: the tables.
    """

    projects: Mapping[str, Project] = field(default_factory=dict)
    debian: Mapping[str, Offers] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)
    resolved: Mapping[str, tuple[Wheel, ...] | Refused] = field(default_factory=dict)
    life: EndOfLife = field(default_factory=EndOfLife)
    local: Callable[[Wheel], bool] = lambda _wheel: False


@dataclass(frozen=True, kw_only=True)
class World:
    """All that a rule may decide from, beside the cell and its lock.

    Args:
        offered: releases that tfenv's own matrix has rows of, where the matrix is a team's; else None.
    """

    matrix: Matrix
    answers: Answers
    today: date
    offered: tuple[str, ...] | None = None
