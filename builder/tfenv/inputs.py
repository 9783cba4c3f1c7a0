"""All that decides an image's bytes, but for the builder's own version, and its hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tfenv import render
from tfenv.lockfile import lock_hash
from tfenv.model import Cell, Lock


@dataclass(frozen=True)
class Inputs:
    """What is built.

    Args:
        locked: false where ``lock`` is not the committed one; the image is marked so.
        files: the rendered files, by name.
        stand_in: the base image in whose place another is taken, empty for none.
        contexts: BuildKit's named contexts beside those that every build has, each known by its content.
        base: archive of the image that this one extends, if it extends one.
    """

    cell: Cell
    lock: Lock
    locked: bool
    files: Mapping[str, str]
    stand_in: str = ""
    contexts: Mapping[str, str] = field(default_factory=dict)
    base: Path | None = None

    @property
    def own(self) -> Lock:
        """What the build itself installs: all of the lock, but for what an image that it extends has."""
        return self.lock

    @cached_property
    def lock_hash(self) -> str:
        """sha256 of the lock."""
        return lock_hash(self.lock)

    @cached_property
    def hash(self) -> str:
        """sha256 over the lock, the recipe and the rendered files: the build's name."""
        recipe = render.template_version(self.cell.base.kind)
        told: list[object] = [self.lock_hash, recipe, sorted(self.files.items())]
        if self.contexts:  # where they lie in this machine has no say
            told.append(sorted((name, at.rpartition("@")[2]) for name, at in self.contexts.items()))
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()

    @property
    def ending(self) -> str:
        """What the image's canonical name ends in, where it is not what the committed lock gives."""
        return "-stand-in" if self.stand_in else "" if self.locked else "-unlocked"

    @property
    def building(self) -> str:
        """The passing name under which the engine keeps the image until it is tagged."""
        return f"tfenv-building:{self.hash[:16]}"


def unlocked(cell: Cell, lock: Lock) -> Inputs:
    """What another lock than the committed one gives; the image says so."""
    return Inputs(cell, lock, False, render.render(cell, lock, locked=False))
