"""Make a cell's lock: resolve what was asked for, keep everything else as it was locked."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

from tfenv.errors import UsageError
from tfenv.lockfile import LOCK_NAME, REQUIREMENTS_NAME, dump_lock, requirements_lock
from tfenv.model import Cell, DebianPackage, Lock, Wheel

Upgrade = Literal["wheels", "debian"]
# The one architecture so far; everything else derives from it.
PLATFORM = "linux/amd64"


@dataclass(frozen=True, kw_only=True)
class Resolvers:
    """How packages are resolved; the tests pass their own.

    Args:
        debian: (suite, wanted packages) -> all packages.
        wheels: (cell, platform such as ``x86_64-manylinux_2_36``) -> all wheels.
        uv: version of the uv that resolves.
    """

    debian: Callable[[str, tuple[str, ...]], tuple[DebianPackage, ...]]
    wheels: Callable[[Cell, str], tuple[Wheel, ...]]
    uv: Callable[[], str]


def host_resolvers(env: Mapping[str, str] | None = None) -> Resolvers:
    """The real ones: this host's apt, uv and index settings."""
    from tfenv.debian import resolve_debian
    from tfenv.download import measure
    from tfenv.index import discover
    from tfenv.wheels import resolve_wheels, uv_binary, uv_version

    env = os.environ if env is None else env

    def wheels(cell: Cell, platform: str) -> tuple[Wheel, ...]:
        index = discover(env)
        found, _ = resolve_wheels(
            cell.row.requirements,
            python=cell.python,
            platform=platform,
            exclude_newer=cell.row.exclude_newer,
            without=[rule.what for rule in cell.row.cuda_set.without],
            index=index,
            uv=uv_binary(env),
            measure=lambda url: measure(url, index.requests_session()),
        )
        return found

    return Resolvers(
        debian=lambda suite, packages: resolve_debian(suite, packages, env),
        wheels=wheels,
        uv=lambda: uv_version(uv_binary(env)),
    )


def make_lock(
    cell: Cell,
    previous: Lock | None,
    upgrade: Set[Upgrade],
    *,
    template_version: str,
    resolvers: Resolvers,
    now: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
) -> Lock:
    """The cell's lock.

    Args:
        previous: what is locked today; None resolves everything.
        upgrade: what to resolve anew although it is locked.
        template_version: sha256 of the templates.
        now: when the Debian index is read.

    Without ``upgrade`` only what needs no resolving follows the matrix: epochs, trim, keep,
    without and the template version. Raises UsageError where the matrix asks for more than that.
    """
    from tfenv.debian import glibc_level

    if previous is None:
        upgrade = {"wheels", "debian"}
    if previous is not None and "debian" not in upgrade:
        debian, locked_at = previous.debian, previous.debian_locked_at
        _check_debian(cell, previous)
    else:
        locked_at = now().astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        debian = resolvers.debian(cell.base.suite, cell.base.packages)
    without = cell.row.cuda_set.without
    if previous is not None and "wheels" not in upgrade:
        _check_wheels(cell, previous)
        dropped = {rule.what for rule in without}
        wheels = tuple(wheel for wheel in previous.wheels if wheel.name not in dropped)
        uv, exclude_newer = previous.uv, previous.exclude_newer
    else:
        wheels = resolvers.wheels(cell, glibc_level(debian))
        uv, exclude_newer = resolvers.uv(), cell.row.exclude_newer
    return Lock(
        cell=cell.name,
        platform=PLATFORM,
        epoch=cell.row.cuda_set.epoch,
        base_epoch=cell.base.epoch,
        exclude_newer=exclude_newer,
        cuda_from=cell.base.cuda_from,
        template=template_version,
        uv=uv,
        suite=cell.base.suite,
        debian_locked_at=locked_at,
        debian=tuple(sorted(debian, key=lambda p: p.name)),
        wheels=tuple(sorted(wheels, key=lambda w: (w.name, w.layer))),
        trim=cell.row.trim,
        keep=cell.row.keep,
        without=without,
    )


def with_todays_debian(lock: Lock, resolvers: Resolvers, packages: tuple[str, ...]) -> Lock:
    """The lock with the mirror's versions of today, for ``up`` when locked ones are gone."""
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    debian = tuple(sorted(resolvers.debian(lock.suite, packages), key=lambda p: p.name))
    return replace(lock, debian=debian, debian_locked_at=now)


def write_lock(lock: Lock, images_dir: Path) -> Path:
    """Write lock.json and requirements.lock into ``images_dir``/<cell>; return lock.json.

    Both are written aside first, so that a full disk or a kill leaves the old pair or the new one.
    """
    from tfenv.files import write_all

    folder = images_dir / lock.cell
    write_all(folder, {REQUIREMENTS_NAME: requirements_lock(lock), LOCK_NAME: dump_lock(lock)})
    return folder / LOCK_NAME


def _check_debian(cell: Cell, previous: Lock) -> None:
    locked = {package.name for package in previous.debian}
    wanted = [name for name in cell.base.packages if name not in locked]
    if previous.suite != cell.base.suite:
        reason = f"the base is {cell.base.suite} now, locked is {previous.suite}"
    elif wanted:
        reason = f"the base wants {', '.join(wanted)}, which the lock does not hold"
    else:
        return
    raise UsageError(f"{cell.name}: {reason}", remedy=f"tfenv lock {cell.name} --upgrade debian")


def _check_wheels(cell: Cell, previous: Lock) -> None:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    remedy = f"tfenv lock {cell.name} --upgrade wheels"
    locked = {wheel.name: wheel.version for wheel in previous.wheels if wheel.layer != "tool"}
    for text in cell.row.requirements:
        requirement = Requirement(text)
        version = locked.get(canonicalize_name(requirement.name))
        if version is None or not requirement.specifier.contains(version, prereleases=True):
            raise UsageError(
                f"{cell.name}: the row requires {text}, locked is {version or 'nothing'}",
                remedy=remedy,
            )
    now_without = {rule.what for rule in cell.row.cuda_set.without}
    back = sorted({rule.what for rule in previous.without} - now_without)
    if back:
        raise UsageError(
            f"{cell.name}: {', '.join(back)} is no longer left out, so it has to be resolved",
            remedy=remedy,
        )
