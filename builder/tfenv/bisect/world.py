"""What a bisection asks of the world outside: a resolver, an index's listings, a way to make environments."""

from __future__ import annotations

import os
import platform as machine
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tfenv.bisect.locating import Located
from tfenv.bisect.model import Change, Endpoint, Pin, PinSet
from tfenv.bisect.venv import Builder
from tfenv.errors import NotReadyError

# (whose requirements, more of them, RFC 3339) -> pins. Raises UsageError where they cannot be met.
Resolve = Callable[[Endpoint, tuple[str, ...], str], PinSet]
# (good, bad, since, until) -> moments in order. Raises LookupError where an index tells no times.
Moments = Callable[[PinSet, PinSet, str, str], tuple[str, ...]]
# (change, until) -> versions between the two.
Between = Callable[[Change, str], tuple[str, ...]]
# (name, version, until) -> the pin of that version. Raises UsageError where there is none.
PinOf = Callable[[str, str, str], Pin]


@dataclass(frozen=True, kw_only=True)
class World:
    """The probes; the tests pass their own."""

    resolve: Resolve
    moments: Moments
    between: Between
    pin_of: PinOf
    builder: Builder


def host_platform() -> str:
    """What wheels run on this host, e.g. ``x86_64-manylinux_2_36``.

    Raises:
        NotReadyError: its C library is not glibc.
    """
    from tfenv.uv import platform_for

    name, version = machine.libc_ver()
    if name != "glibc":
        raise NotReadyError(
            "this host's C library is not glibc, for which TensorFlow's wheels are made",
            remedy="bisect in the cell's image: --in image",
        )
    return platform_for(".".join(version.split(".")[:2]))


def host_world(
    builder: Builder,
    *,
    python: str,
    platform: str,
    left_out: tuple[str, ...],
    note: Callable[[Pin, Located], None],
    env: Mapping[str, str] | None = None,
) -> World:
    """The real probes: this host's uv and the user's own indexes.

    Args:
        left_out, note: see ``resolving.Resolver``.
        python: ``3.11``; platform: ``x86_64-manylinux_2_36``.
    """
    from tfenv.bisect import moments as times
    from tfenv.bisect.resolving import Resolver
    from tfenv.index import discover
    from tfenv.parallel import once
    from tfenv.simple_index import ProjectFile, SimpleIndex, index_urls, project_files
    from tfenv.uv import uv_binary
    from tfenv.wheel_tags import supported_tags

    env = os.environ if env is None else env
    settings, uv = discover(env), uv_binary(env)
    tags = supported_tags(python, platform)
    resolver = Resolver(
        python=python,
        platform=platform,
        index=settings,
        uv=uv,
        env=env,
        left_out=left_out,
        note=note,
    )

    def opened() -> SimpleIndex:
        urls = index_urls(settings, uv=uv, env=env, run=subprocess.run)
        return SimpleIndex(urls, settings.requests_session(), settings.timeout)

    index = once(opened)

    def files(name: str) -> Iterable[ProjectFile]:
        return project_files(index(), name)

    listed = once(files)

    def dates(good: PinSet, bad: PinSet, since: str, until: str) -> tuple[str, ...]:
        return times.moments(good, bad, since, until, files=listed, tags=tags)

    def between(change: Change, until: str) -> tuple[str, ...]:
        return times.versions_between(change, until, files=listed, tags=tags)

    return World(
        resolve=resolver.resolve, moments=dates, between=between, pin_of=resolver.pin, builder=builder
    )
