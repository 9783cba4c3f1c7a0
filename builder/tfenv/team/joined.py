"""The row's lock and the team's together: what is in the image, and what of it the team's layers add."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields

from tfenv.errors import TfenvError
from tfenv.lockfile import check_lock
from tfenv.model import Environment, Lock, Rule

from .extras import extras
from .model import Layer, TeamLock

_DEVELOPMENT = Rule(what="**", why="an image to develop in keeps headers and compilers on purpose")


def development(cell: Environment) -> bool:
    """Whether compilers and headers stay in the image."""
    return any(extras()[name].development for name in cell.extras)


def whole(cell: Environment, row: Lock, team: TeamLock) -> Lock:
    """All that is in the image by hash: the row's packages and the team's.

    A Debian package of the team's replaces the row's of that name.

    Raises:
        TfenvError: the two do not go together.
    """
    debian = {package.name: package for package in (*row.debian, *team.debian)}
    own = {
        "cell": cell.name,
        "epoch": team.epoch,
        "requirements": (*row.requirements, *team.requirements),
        "template": hashlib.sha256(json.dumps([team.row.inputs, team.template]).encode()).hexdigest(),
        "debian_packages": (*row.debian_packages, *team.apt),
        "debian_locked_at": max(row.debian_locked_at, team.debian_locked_at),
        "debian": tuple(sorted(debian.values(), key=lambda package: package.name)),
        "wheels": tuple(sorted((*row.wheels, *team.wheels), key=lambda wheel: (wheel.name, wheel.layer))),
        "keep": (*row.keep, *([_DEVELOPMENT] if development(cell) else [])),
    }
    made = Lock(**{**vars(row), **own})
    try:
        check_lock(made)
    except ValueError as error:
        raise TfenvError(
            f"the lock of {cell.name} does not go with that of {team.row.cell}: {error}",
            remedy=f"type: tfenv lock {cell.name} --upgrade wheels",
        ) from error
    return made


def layer(cell: Environment, row: Lock, team: TeamLock) -> Layer:
    """What the team's own layers are made of; the uv that installs them is the row's."""
    tools = tuple(wheel for wheel in row.wheels if wheel.layer == "tool")
    kept = {field.name: getattr(row, field.name) for field in fields(Lock)}
    own = {
        "cell": cell.name,
        "epoch": team.epoch,
        "base_image": "",
        "base_digest": "",
        "interpreter": None,
        "debian": team.debian,
        "debian_locked_at": team.debian_locked_at,
        "wheels": tuple(sorted((*tools, *team.wheels), key=lambda wheel: (wheel.name, wheel.layer))),
    }
    return Layer(**{**kept, **own}, python=cell.python)
