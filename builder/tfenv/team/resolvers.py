"""Who resolves a team's packages: this host's uv and apt, or what a test passes in."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tfenv import times
from tfenv.model import DebianPackage, Environment, Lock, Wheel
from tfenv.refusals import project

from .packages import resolve_on_top


@dataclass(frozen=True, kw_only=True)
class Resolvers:
    """How packages are resolved; the tests pass their own.

    Args:
        wheels: (environment, the row's lock, requirements, constraints, RFC 3339 time) -> the wheels
            that the row lacks. UsageError where the requirements cannot be met.
        debian: (suite, what is installed, what is wanted) -> what is to be added, and the time of the
            mirror's indexes.
        uv: version of the uv that resolves.
        now: RFC 3339 time.
    """

    wheels: Callable[[Environment, Lock, Sequence[str], Sequence[str], str], tuple[Wheel, ...]]
    debian: Callable[[str, Sequence[DebianPackage], Sequence[str]], tuple[tuple[DebianPackage, ...], str]]
    uv: Callable[[], str]
    now: Callable[[], str]


def host_resolvers(env: Mapping[str, str] | None = None) -> Resolvers:
    """The real ones: this host's uv, apt and index settings."""
    from tfenv.uv import uv_binary, uv_version

    env = os.environ if env is None else env

    def wheels(
        cell: Environment, row: Lock, asked: Sequence[str], constraints: Sequence[str], newest: str
    ) -> tuple[Wheel, ...]:
        from tfenv.index import discover
        from tfenv.measure import measure
        from tfenv.wheels import resolve_wheels

        index, wanted = discover(env), {project(text) for text in asked}
        found, _ = resolve_wheels(
            (*cell.start.requirements, *asked),
            python=cell.python,
            platform=row.wheel_platform,
            exclude_newer=newest,
            exempt=constraints,
            from_source=[wheel.name for wheel in row.wheels if wheel.layer == "source"],
            without=[rule.what for rule in row.without if rule.what not in wanted],
            constraints=constraints,
            index=index,
            uv=uv_binary(env),
            env=env,
            measure=lambda url: measure(url, index.requests_session()),
        )
        there = {wheel.name for wheel in row.wheels if wheel.layer != "tool"}
        return tuple(wheel for wheel in found if wheel.layer != "tool" and wheel.name not in there)

    return Resolvers(
        wheels=wheels,
        debian=lambda suite, installed, wanted: resolve_on_top(suite, installed, wanted, env),
        uv=lambda: uv_version(uv_binary(env)),
        now=times.now,
    )
