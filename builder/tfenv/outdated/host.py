"""The real probes: this host's index settings, apt, registry login and resolver."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tfenv.errors import NotReadyError, TfenvError, UsageError
from tfenv.outdated.probes import Offer, Offers, Probes, Refused

if TYPE_CHECKING:
    from tfenv.model import Cell, Environment, Lock, Wheel
    from tfenv.simple_index import SimpleIndex

_SECURITY = re.compile(r"[\w.-]+-security$|[\w.-]+/updates$")
# How registries, and buildx for them, say that there is no such tag.
_NO_SUCH_TAG = re.compile(r": not found$|manifest unknown|MANIFEST_UNKNOWN|NAME_UNKNOWN", re.IGNORECASE)


def host_probes(env: Mapping[str, str] | None = None, *, resolve: bool = False) -> Probes:
    """Probes that ask what this host's pip, uv, apt and docker would ask.

    Args:
        resolve: also let the resolver run again, for every cell.
    """
    from tfenv.fetch import find_local
    from tfenv.index import discover
    from tfenv.outdated.life import end_of_life
    from tfenv.simple_index import open_index, project_files

    env = os.environ if env is None else env
    folders = discover(env).local_folders()
    # Opened when first needed: without uv, only the index cannot be asked.
    index = _once(lambda: open_index(env))
    return Probes(
        files=lambda name: project_files(index(), name),
        local=lambda wheel: bool(find_local(wheel, folders)),
        debian=lambda suite, names: debian_today(suite, names, env),
        digest=digest_today,
        end_of_life=end_of_life,
        resolve=(lambda cell, lock: resolve_today(cell, lock, env)) if resolve else None,
        hosts=_hosts(index, env),
    )


def debian_today(
    suite: str, names: tuple[str, ...], env: Mapping[str, str], run: Any = subprocess.run
) -> Offers:
    """What the mirror offers of some packages, in the suite, its updates and its security archive.

    Raises NotReadyError where apt or the mirror does not answer.
    """
    from tfenv.apt import ScratchApt
    from tfenv.debian import keyring, sources_list
    from tfenv.mirrors import find_mirrors

    mirrors = find_mirrors(suite, env)
    signed_by = mirrors.keyring or keyring()
    with tempfile.TemporaryDirectory(prefix="tfenv-apt-") as folder:
        apt = ScratchApt(Path(folder), sources_list(suite, mirrors, signed_by), env, run)
        apt("apt-get", "-q", "update")
        return parse_madison(apt("apt-cache", "madison", *names))


def parse_madison(text: str) -> Offers:
    """Lines of ``apt-cache madison``: ``name | version | URL suite/component architecture Packages``."""
    found: dict[str, tuple[Offer, ...]] = {}
    for line in text.splitlines():
        name, version, source = (part.strip() for part in line.split("|", 2))
        where = source.split()
        suite = where[1].rpartition("/")[0] if len(where) > 1 else ""
        archive: Literal["debian", "debian-security"] = (
            "debian-security" if _SECURITY.fullmatch(suite) else "debian"
        )
        found[name] = (*found.get(name, ()), Offer(version, archive))
    return found


def digest_today(image: str, ask: Callable[[str], str] | None = None) -> str:
    """The digest of an image's tag; empty where the registry has no such tag.

    Args:
        ask: gives the digest, raising NotReadyError with the registry's words.
    """
    try:
        return (ask or _registry_digest)(image)
    except NotReadyError as error:
        if _NO_SUCH_TAG.search(error.message):
            return ""
        raise


def resolve_today(cell: Cell, lock: Lock, env: Mapping[str, str]) -> tuple[Wheel, ...] | Refused:
    """What the cell's requirements resolve to now, or why they do not.

    Args:
        lock: the cell's; of an environment the row's, beside whose packages its own have to stand.
    """
    from tfenv.lock import host_resolvers
    from tfenv.model import Environment

    try:
        if isinstance(cell, Environment):
            return _environment_today(cell, lock, env)
        return host_resolvers(env).wheels(cell, lock.wheel_platform)
    except UsageError as error:
        return Refused(" ".join(error.message.split()))


def _environment_today(cell: Environment, row: Lock, env: Mapping[str, str]) -> tuple[Wheel, ...]:
    from tfenv import times
    from tfenv.team.locking import row_pins
    from tfenv.team.resolvers import host_resolvers

    if not cell.asked:
        return ()
    return host_resolvers(env).wheels(cell, row, cell.asked, row_pins(row), times.now())


def _registry_digest(image: str) -> str:
    from tfenv.engine import run_command
    from tfenv.image_digest import registry_digest

    return registry_digest(image, lambda argv: run_command(argv, timeout=20))


def _hosts(index: Callable[[], SimpleIndex], env: Mapping[str, str]) -> dict[str, str]:
    from tfenv.mirrors import find_mirrors
    from tfenv.simple_index import host_of

    found: dict[str, str] = {}
    # What is wrong is said when the question itself is asked.
    with contextlib.suppress(TfenvError):
        found["index"] = ", ".join(index().hosts()) or "no package index"
    with contextlib.suppress(TfenvError):
        found["debian"] = host_of(find_mirrors("", env).debian)
    return found


def _once(make: Callable[[], SimpleIndex]) -> Callable[[], SimpleIndex]:
    return cache(make)
