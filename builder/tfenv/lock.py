"""Make a cell's lock: resolve what was asked for, keep everything else as it was locked."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from tfenv.errors import UsageError
from tfenv.lockfile import LOCK_NAME, REQUIREMENTS_NAME, dump_lock, requirements_lock
from tfenv.model import Cell, DebianPackage, Interpreter, Lock, Wheel

Upgrade = Literal["wheels", "debian", "base", "python"]
UPGRADES: tuple[Upgrade, ...] = get_args(Upgrade)
# The one architecture so far; everything else derives from it.
PLATFORM = "linux/amd64"


@dataclass(frozen=True, kw_only=True)
class Resolvers:
    """How packages are resolved; the tests pass their own.

    Args:
        debian: (suite, wanted packages) -> all packages, and the RFC 3339 time of the mirror's indexes.
        wheels: (cell, platform such as ``x86_64-manylinux_2_36``) -> all wheels.
        uv: version of the uv that resolves.
        digest: image with a tag -> its digest, as the registry tells it.
    """

    debian: Callable[[str, tuple[str, ...]], tuple[tuple[DebianPackage, ...], str]]
    wheels: Callable[[Cell, str], tuple[Wheel, ...]]
    uv: Callable[[], str]
    digest: Callable[[str], str]


def host_resolvers(env: Mapping[str, str] | None = None) -> Resolvers:
    """The real ones: this host's apt, uv and index settings."""
    from tfenv.debian import resolve_debian
    from tfenv.engine import run_command
    from tfenv.image_digest import registry_digest
    from tfenv.index import discover
    from tfenv.measure import measure
    from tfenv.uv import uv_binary, uv_version
    from tfenv.wheels import resolve_wheels

    env = os.environ if env is None else env

    def wheels(cell: Cell, platform: str) -> tuple[Wheel, ...]:
        index = discover(env)
        found, _ = resolve_wheels(
            cell.requirements,
            python=cell.python,
            platform=platform,
            exclude_newer=cell.row.exclude_newer,
            exempt=cell.cuda_wheels,
            from_source=[rule.what for rule in cell.row.from_source],
            without=[rule.what for rule in cell.cuda_set.without],
            index=index,
            uv=uv_binary(env),
            env=env,
            measure=lambda url: measure(url, index.requests_session()),
        )
        return found

    return Resolvers(
        debian=lambda suite, packages: resolve_debian(suite, packages, env),
        wheels=wheels,
        uv=lambda: uv_version(uv_binary(env)),
        digest=lambda image: registry_digest(image, run_command),
    )


def once_each(resolvers: Resolvers) -> Resolvers:
    """The same, asking once for what many cells share: Debian's packages, uv's version, a tag's digest."""
    from tfenv.parallel import once

    return replace(
        resolvers,
        debian=once(resolvers.debian),
        uv=once(resolvers.uv),
        digest=once(resolvers.digest),
    )


def make_lock(
    cell: Cell,
    previous: Lock | None,
    upgrade: Set[Upgrade],
    *,
    template_version: str,
    resolvers: Resolvers,
) -> Lock:
    """The cell's lock.

    Args:
        previous: what is locked today; None resolves everything.
        upgrade: what to resolve anew although it is locked.
        template_version: sha256 of the templates.

    Without ``upgrade`` only what needs no resolving follows the matrix and the facts: epochs, trim,
    keep, without, the accepted drivers and the template version. Raises UsageError where the matrix
    asks for more than that.
    """
    from tfenv.facts import require_cuda

    if previous is None:
        upgrade = {"wheels", "debian", "python", *upgrade}
    else:
        _check(cell, previous, upgrade)
    base = _base(cell, previous, upgrade, resolvers)
    interpreter = _interpreter(cell, previous, upgrade)
    without = cell.cuda_set.without
    if previous is not None and "wheels" not in upgrade:
        dropped = {rule.what for rule in without}
        wheels = tuple(wheel for wheel in previous.wheels if wheel.name not in dropped)
        uv, exclude_newer = previous.uv, previous.exclude_newer
    else:
        wheels = resolvers.wheels(cell, base.platform)
        uv, exclude_newer = resolvers.uv(), cell.row.exclude_newer
    return Lock(
        cell=cell.name,
        platform=PLATFORM,
        epoch=cell.epoch,
        cuda_epoch=cell.cuda_set.epoch,
        base_epoch=cell.base.epoch,
        base_image=cell.image.partition("@")[0],
        base_digest=base.digest,
        requirements=cell.requirements,
        exclude_newer=exclude_newer,
        wheel_platform=base.platform,
        cuda_from=cell.cuda_from,
        require_cuda=require_cuda(cell.row.tensorflow, cell.cuda_set.cuda),
        template=template_version,
        uv=uv,
        interpreter=interpreter,
        suite=cell.base.suite,
        debian_packages=cell.base.packages_for(cell.python),
        debian_locked_at=base.locked_at,
        debian=tuple(sorted(base.debian, key=lambda p: p.name)),
        wheels=tuple(sorted(wheels, key=lambda w: (w.name, w.layer))),
        links=cell.cuda_set.links if cell.cuda_from == "wheels" else (),
        trim=cell.row.trim,
        keep=cell.row.keep,
        without=without,
    )


@dataclass(frozen=True, kw_only=True)
class _Base:
    """What a lock says of the base: a Debian bootstrap has packages, an image a digest.

    Args:
        platform: what wheels run on it, e.g. ``x86_64-manylinux_2_36``.
    """

    platform: str
    digest: str = ""
    debian: tuple[DebianPackage, ...] = ()
    locked_at: str = ""


def _base(cell: Cell, previous: Lock | None, upgrade: Set[Upgrade], resolvers: Resolvers) -> _Base:
    from tfenv.uv import platform_for

    if cell.base.kind == "nvidia":
        image, _, digest = cell.image.partition("@")
        if not digest and "base" in upgrade:
            digest = resolvers.digest(image)
        elif not digest and previous is not None and previous.base_image == image:
            digest = previous.base_digest
        return _Base(platform=platform_for(cell.base.glibc), digest=digest)
    from tfenv.debian import glibc_of

    if previous is not None and "debian" not in upgrade:
        debian, locked_at = previous.debian, previous.debian_locked_at
    else:
        debian, locked_at = resolvers.debian(cell.base.suite, cell.base.packages_for(cell.python))
    return _Base(platform=platform_for(glibc_of(debian)), debian=debian, locked_at=locked_at)


def _interpreter(cell: Cell, previous: Lock | None, upgrade: Set[Upgrade]) -> Interpreter | None:
    if cell.base.brings(cell.python):
        return None
    if previous is not None and previous.interpreter is not None and "python" not in upgrade:
        return previous.interpreter
    from tfenv.interpreters import interpreter

    return interpreter(cell.python)


def require_current(cell: Cell, lock: Lock, template_version: str) -> None:
    """Refuse a lock that is not of what matrix, facts and templates ask for now.

    Raises:
        UsageError: says what differs and what to type.
    """

    def never(*_: object) -> Any:
        raise AssertionError("nothing is resolved without an upgrade")

    resolvers = Resolvers(debian=never, wheels=never, uv=never, digest=never)
    if make_lock(cell, lock, set(), template_version=template_version, resolvers=resolvers) != lock:
        raise UsageError(
            f"the lock of {cell.name} does not follow matrix.yaml, the facts and the templates",
            remedy=f"type: tfenv lock {cell.name}   (keeps every pin), then: tfenv render",
        )


def with_todays_debian(lock: Lock, resolvers: Resolvers, packages: tuple[str, ...]) -> Lock:
    """The lock with the mirror's versions of today, for ``up`` when locked ones are gone."""
    found, at = resolvers.debian(lock.suite, packages)
    debian = tuple(sorted(found, key=lambda p: p.name))
    return replace(lock, debian=debian, debian_packages=packages, debian_locked_at=at)


def write_lock(lock: Lock, images_dir: Path) -> Path:
    """Write lock.json and requirements.lock into ``images_dir``/<cell>; return lock.json.

    Both are written aside first, so that a full disk or a kill leaves the old pair or the new one.
    """
    from tfenv.files import write_all

    folder = images_dir / lock.cell
    write_all(folder, {REQUIREMENTS_NAME: requirements_lock(lock), LOCK_NAME: dump_lock(lock)})
    return folder / LOCK_NAME


def _check(cell: Cell, previous: Lock, upgrade: Set[Upgrade]) -> None:
    """Raise UsageError where the matrix asks a resolver for something else than the lock was made from."""
    differs = differences(cell, previous)
    left = {half for half, reasons in differs.items() if reasons and half not in upgrade}
    if not left:
        return
    reasons = [reason for half in sorted(left) for reason in differs[half]]
    halves = left | upgrade
    raise UsageError(
        f"{cell.name}: the matrix asks for something else than the lock was made from:\n  "
        + "\n  ".join(reasons),
        remedy=f"tfenv lock {cell.name} --upgrade {'all' if len(halves) > 1 else next(iter(halves))}",
    )


def differences(cell: Cell, lock: Lock) -> dict[Upgrade, list[str]]:
    """What a cell asks a resolver for now and its lock was not made from, by what to upgrade."""
    found: dict[Upgrade, list[str]] = {
        "wheels": _wheels_differ(cell, lock),
        "debian": _debian_differs(cell, lock),
    }
    return {half: reasons for half, reasons in found.items() if reasons}


def _debian_differs(cell: Cell, previous: Lock) -> list[str]:
    reasons = []
    if previous.suite != cell.base.suite:
        reasons.append(f"the base is {cell.base.suite}, locked is {previous.suite}")
    wanted = cell.base.packages_for(cell.python)
    return reasons + _asked("Debian packages", wanted, previous.debian_packages)


def _wheels_differ(cell: Cell, previous: Lock) -> list[str]:
    reasons = _asked("requirements", cell.requirements, previous.requirements)
    source = {wheel.name for wheel in previous.wheels if wheel.layer == "source"}
    if source != (wanted := {rule.what for rule in cell.row.from_source}):
        asked, locked = (", ".join(sorted(names)) or "nothing" for names in (wanted, source))
        reasons.append(f"from source: {asked}, locked: {locked}")
    if cell.base.kind == "nvidia":  # a Debian bootstrap's C library is locked with its packages
        from tfenv.uv import platform_for

        if previous.wheel_platform != (platform := platform_for(cell.base.glibc)):
            reasons.append(f"wheels are to run on {platform}, locked are those for {previous.wheel_platform}")
    if previous.exclude_newer != cell.row.exclude_newer:
        reasons.append(f"exclude_newer is {cell.row.exclude_newer}, locked is {previous.exclude_newer}")
    now_without = {rule.what for rule in cell.cuda_set.without}
    back = sorted({rule.what for rule in previous.without} - now_without)
    if back:
        reasons.append(f"{', '.join(back)} is no longer left out, so it has to be resolved")
    return reasons


def _asked(what: str, now: tuple[str, ...], locked: tuple[str, ...]) -> list[str]:
    """Their order has no meaning, so it may change without resolving."""
    changes = (("new", set(now) - set(locked)), ("no longer there", set(locked) - set(now)))
    return [f"{what}: {', '.join(sorted(names))} {word}" for word, names in changes if names]
