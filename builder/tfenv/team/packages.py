"""Debian packages for layers on top of an image: what apt would add to what is installed there."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tfenv.apt import Run, ScratchApt
from tfenv.debian import (
    Stanza,
    debian_packages,
    keyring,
    newest_date,
    parse_stanzas,
    print_uris,
    sources_list,
)
from tfenv.errors import UsageError
from tfenv.mirrors import Mirrors, find_mirrors
from tfenv.model import Cell, DebianPackage

# What apt has to know of an installed package whose own needs are met.
_KEPT = ("Multi-Arch", "Provides", "Essential", "Priority")


def resolve_on_top(
    suite: str,
    installed: Sequence[DebianPackage],
    wanted: Sequence[str],
    env: Mapping[str, str] | None = None,
    run: Run = subprocess.run,
    *,
    mirrors: Mirrors | None = None,
) -> tuple[tuple[DebianPackage, ...], str]:
    """What ``wanted`` needs beside ``installed``, without recommends; what is installed stays if it can.

    Returns them by name, and the RFC 3339 time of the newest of the mirror's indexes.
    Raises NotReadyError without apt, mirror or network, UsageError for a package that does not exist.
    """
    env = os.environ if env is None else env
    mirrors = mirrors or find_mirrors(suite, env)
    with tempfile.TemporaryDirectory(prefix="tfenv-apt-") as folder:
        sources = sources_list(suite, mirrors, mirrors.keyring or keyring(Path.exists))
        apt = ScratchApt(Path(folder), sources, env, run)
        apt("apt-get", "-q", "update")
        offered = list(parse_stanzas(apt("apt-cache", "dumpavail")))
        Path(folder, "status").write_text(status(installed, offered), "utf-8")
        uris = list(print_uris(apt("apt-get", "-qq", "--print-uris", "install", *wanted)))
        at = newest_date(file.read_text("utf-8") for file in sorted(Path(folder, "lists").glob("*Release")))
        names = [f"{uri.name}={uri.version}" for uri in uris]
        shown = apt("apt-cache", "show", *names) if names else ""
    found = debian_packages(uris, list(parse_stanzas(shown)), mirrors)
    # Here the word decides only what is unpacked before there is a dpkg, which is the base's business.
    return tuple(replace(package, essential=False) for package in found), at


def status(installed: Iterable[DebianPackage], offered: Iterable[Stanza]) -> str:
    """dpkg's list of what is installed, in the versions that a lock says.

    Args:
        offered: what the mirror has, of which each package's virtual names are taken.
    """
    known = {stanza["Package"]: stanza for stanza in offered}
    blocks = []
    for package in installed:
        told = known.get(package.name, {})
        lines = {
            "Package": package.name,
            "Status": "install ok installed",
            "Maintainer": "tfenv",
            "Architecture": package.architecture,
            "Version": package.version,
            "Description": package.name,
            **{key: told[key] for key in _KEPT if key in told},
        }
        blocks.append("".join(f"{key}: {value}\n" for key, value in lines.items()))
    return "\n".join(blocks)


def require_debian(cell: Cell) -> None:
    """Refuse Debian packages on a base that has none.

    Raises:
        UsageError: the cell's base is an image of another distribution.
    """
    if cell.base.kind != "debian":
        raise UsageError(
            f"{cell.base.name} is NVIDIA's image of Ubuntu, whose packages tfenv does not lock",
            remedy="extend a cell on a Debian base: tfenv list --base debian12; or leave out --apt "
            "and extras that need Debian packages",
        )
