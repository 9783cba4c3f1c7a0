"""Make a team environment's lock: resolve what was asked for beside the row's packages, keep all else."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set

from tfenv.errors import UsageError
from tfenv.lock import Upgrade
from tfenv.model import Environment, Lock, Wheel
from tfenv.refusals import project

from . import conflict
from .model import RowPin, TeamLock
from .packages import require_debian
from .resolvers import Resolvers

#: What can be resolved anew of an environment; its base and Python are the row's.
OWN_UPGRADES: tuple[Upgrade, ...] = ("wheels", "debian")


def row_pins(row: Lock) -> tuple[str, ...]:
    """The row's packages as constraints: on top of an image none of them can move."""
    return tuple(f"{wheel.name}=={wheel.version}" for wheel in row.wheels if wheel.layer != "tool")


def packages_of(row: Lock) -> str:
    """sha256 over the names and versions of all that the row brings."""
    told = [row_pins(row), [(package.name, package.version) for package in row.debian], row.wheel_platform]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def make_lock(
    cell: Environment,
    row: Lock,
    pin: RowPin,
    previous: TeamLock | None,
    *,
    upgrade: Set[Upgrade],
    packages: Sequence[str] = (),
    template: str,
    resolvers: Resolvers,
) -> TeamLock:
    """The environment's lock.

    Args:
        row: the lock of its cell; pin: what to note of that one's image.
        previous: what is locked today; None resolves everything.
        upgrade: what to resolve anew; packages: names of single wheels to resolve anew.

    Raises:
        UsageError: what is asked for is not what was locked, and was not asked to be resolved anew;
            or it cannot be met, with the reason.
    """
    if cell.apt:
        require_debian(cell)
    if previous is None:
        upgrade = {"wheels", "debian", *upgrade}
    elif late := differences(cell, pin.cell, pin.packages, previous, upgrade):
        raise UsageError(
            f"{cell.name} asks for something else than its lock was made from:\n  " + "\n  ".join(late),
            remedy=f"type: tfenv lock {cell.name} --upgrade all   (or wheels, debian)",
        )
    wheels, uv, newest = _wheels(cell, row, previous, upgrade, packages, resolvers)
    if previous is not None and "debian" not in upgrade:
        debian, at = previous.debian, previous.debian_locked_at
    elif cell.apt:
        debian, at = resolvers.debian(row.suite, row.debian, cell.apt)
    else:
        debian, at = (), ""
    return TeamLock(
        cell=cell.name,
        row=pin,
        epoch=cell.epoch,
        requirements=cell.asked,
        apt=cell.apt,
        exclude_newer=newest,
        template=template,
        uv=uv,
        debian=tuple(sorted(debian, key=lambda package: package.name)),
        debian_locked_at=at,
        wheels=tuple(sorted(wheels, key=lambda wheel: wheel.name)),
    )


def differences(
    cell: Environment, row: str, packages: str, lock: TeamLock, upgrade: Set[Upgrade] = frozenset()
) -> list[str]:
    """What an environment asks a resolver for now and its lock was not made from.

    Args:
        row: name of the cell that it extends; packages: hash of what that one brings.
    """
    found = []
    if "wheels" not in upgrade:
        found += _asked("requirements", cell.asked, lock.requirements)
        if cell.exclude_newer != lock.exclude_newer:
            found.append(f"exclude_newer is {cell.exclude_newer}, locked is {lock.exclude_newer}")
    if "debian" not in upgrade:
        found += _asked("Debian packages", cell.apt, lock.apt)
    if not {"wheels", "debian"} <= upgrade:
        if row != lock.row.cell:
            found.append(f"it extends {row}, locked is {lock.row.cell}")
        elif packages != lock.row.packages:
            found.append(f"{row} has other packages than when it was locked")
    return found


def _asked(what: str, now: tuple[str, ...], locked: tuple[str, ...]) -> list[str]:
    changes = (("new", set(now) - set(locked)), ("no longer there", set(locked) - set(now)))
    return [f"{what}: {', '.join(sorted(names))} {word}" for word, names in changes if names]


def _wheels(
    cell: Environment,
    row: Lock,
    previous: TeamLock | None,
    upgrade: Set[Upgrade],
    packages: Sequence[str],
    resolvers: Resolvers,
) -> tuple[tuple[Wheel, ...], str, str]:
    """The wheels, uv's version and the time that the lock names."""
    if previous is None or "wheels" in upgrade:
        if not cell.asked:
            return (), resolvers.uv(), cell.exclude_newer
        pins = row_pins(row)

        def resolve(asked: Sequence[str]) -> tuple[Wheel, ...]:
            return resolvers.wheels(cell, row, asked, pins, cell.exclude_newer)

        found = _explained(cell, pins, resolve)
        _one_cuda(cell, found)
        return found, resolvers.uv(), cell.exclude_newer
    if not packages:
        return previous.wheels, previous.uv, previous.exclude_newer
    found = _single(cell, row, previous, packages, resolvers)
    _one_cuda(cell, found)
    return found, resolvers.uv(), previous.exclude_newer


def _explained(
    cell: Environment, pins: Sequence[str], resolve: Callable[[Sequence[str]], tuple[Wheel, ...]]
) -> tuple[Wheel, ...]:
    def works(asked: tuple[str, ...]) -> Mapping[str, str] | None:
        try:
            return {wheel.name: wheel.version for wheel in resolve(asked)}
        except UsageError:
            return None

    try:
        return resolve(cell.asked)
    except UsageError as error:
        raise conflict.explain(cell, pins, error.message, works) from error


def _single(
    cell: Environment, row: Lock, previous: TeamLock, packages: Sequence[str], resolvers: Resolvers
) -> tuple[Wheel, ...]:
    """Some packages anew, all others as they are locked."""
    names = [project(name) for name in packages]
    locked = {wheel.name: wheel.version for wheel in previous.wheels}
    for name in names:
        if name not in locked:
            of_row = any(wheel.name == name for wheel in row.wheels)
            whose = f"it is the cell's: {previous.row.cell}" if of_row else "it is not locked there"
            remedy = "extend another cell" if of_row else f"there are {', '.join(locked) or 'none'}"
            raise UsageError(f"{cell.name} cannot upgrade {name}: {whose}", remedy=remedy)
    kept = tuple(f"{name}=={version}" for name, version in locked.items() if name not in names)
    try:
        # Of any day: what is pinned is pinned, and what is asked for anew is to be the newest.
        found = resolvers.wheels(cell, row, cell.asked, (*row_pins(row), *kept), resolvers.now())
    except UsageError as error:
        told = conflict.in_words(error.message, row_pins(row), previous.row.cell)
        more = [pin.partition("==")[0] for pin in kept if pin in told]
        options = " ".join(f"--upgrade-package {name}" for name in (*names, *more))
        raise conflict.ConflictError(
            f"{cell.name}: {', '.join(names)} cannot be upgraded while all else stays:\n{told}",
            remedy=f"upgrade what it names as well: tfenv lock {cell.name} {options}",
        ) from error
    # Of what stays the very file stays, too: an index may have got another one of that version since.
    before = {wheel.name: wheel for wheel in previous.wheels if wheel.name not in names}
    return tuple(before.get(wheel.name, wheel) for wheel in found)


def _one_cuda(cell: Environment, wheels: Iterable[Wheel]) -> None:
    """Refuse wheels of another CUDA than the cell's.

    Raises:
        UsageError: names them.
    """
    own = cell.cuda_set.cuda.partition(".")[0]
    foreign = []
    for wheel in wheels:
        match = re.fullmatch(r"nvidia-.+-cu(\d+)", wheel.name)
        if match and match[1] != own:
            foreign.append(f"{wheel.name}=={wheel.version}")
    if foreign:
        raise UsageError(
            f"{cell.name} would bring a second CUDA: {', '.join(foreign)}; {cell.start.name} has CUDA "
            f"{cell.cuda_set.cuda}",
            remedy=f"ask for builds of these packages for CUDA {own}, or extend a cell with another CUDA",
        )
