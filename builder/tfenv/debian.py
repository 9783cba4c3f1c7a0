"""Debian packages: what the host's apt would install into an empty root, by hash."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from tfenv.apt import Run, ScratchApt
from tfenv.errors import NotReadyError, TfenvError
from tfenv.mirrors import Archive, Mirrors, find_mirrors
from tfenv.model import DebianPackage
from tfenv.times import rfc3339

Stanza = Mapping[str, str]

_KEYRINGS = (
    "/usr/share/keyrings/debian-archive-keyring.pgp",
    "/usr/share/keyrings/debian-archive-keyring.gpg",
)


def resolve_debian(
    suite: str,
    packages: Sequence[str],
    env: Mapping[str, str] | None = None,
    run: Run = subprocess.run,
    *,
    mirrors: Mirrors | None = None,
) -> tuple[tuple[DebianPackage, ...], str]:
    """All Essential packages, ``packages`` and what they need, without recommends, for amd64.

    Args:
        suite: code name, e.g. ``bookworm``; its updates and security suites are read too.

    Returns them by name, with the mirror's versions, and the RFC 3339 time of the newest of the
    indexes read: the same state of the mirror gives the same answer whenever it is asked.
    Raises NotReadyError without apt, mirror or network, UsageError for a package that does not exist.
    """
    env = os.environ if env is None else env
    mirrors = mirrors or find_mirrors(suite, env)
    signed_by = mirrors.keyring or keyring(Path.exists)
    with tempfile.TemporaryDirectory(prefix="tfenv-apt-") as folder:
        apt = ScratchApt(Path(folder), sources_list(suite, mirrors, signed_by), env, run)
        apt("apt-get", "-q", "update")
        wanted = apt("apt-get", "-qq", "--print-uris", "install", "?essential", *packages)
        uris = list(print_uris(wanted))
        names = [f"{uri.name}={uri.version}" for uri in uris]
        shown = apt("apt-cache", "show", *names) if names else ""
        at = newest_date(file.read_text("utf-8") for file in sorted(Path(folder, "lists").glob("*Release")))
    return debian_packages(uris, list(parse_stanzas(shown)), mirrors), at


def sources_list(suite: str, mirrors: Mirrors, keyring: str) -> str:
    """A suite with its updates and security archive, in apt's one-line form."""
    archives = (
        (mirrors.debian, suite),
        (mirrors.debian, f"{suite}-updates"),
        (mirrors.security, f"{suite}-security"),
    )
    return "".join(f"deb [signed-by={keyring} arch=amd64] {url} {name} main\n" for url, name in archives)


def newest_date(releases: Iterable[str]) -> str:
    """The latest ``Date`` of some Release (or InRelease) files, as RFC 3339 in UTC."""
    from email.utils import parsedate_to_datetime

    dates = [match[1] for text in releases if (match := re.search(r"^Date: *(.+)$", text, re.MULTILINE))]
    try:
        newest = max(parsedate_to_datetime(re.sub(r"\bUTC$", "+0000", date.strip())) for date in dates)
    except (TypeError, ValueError) as error:
        raise TfenvError(
            "the Debian mirror's Release files do not say when they were made",
            remedy="try another mirror: TFENV_DEBIAN_MIRROR=<URL of a mirror, ending in /debian>",
        ) from error
    return rfc3339(newest)


def debian_packages(
    uris: Iterable[Uri], stanzas: Sequence[Stanza], mirrors: Mirrors
) -> tuple[DebianPackage, ...]:
    """Join what apt would fetch with what its index says of it."""
    known = {(s["Package"], s["Version"]): s for s in stanzas}
    chosen = {uri.name: (uri, known[uri.name, uri.version]) for uri in uris}
    essential = essential_closure([stanza for _, stanza in chosen.values()])
    locked = []
    for name in sorted(chosen):
        uri, stanza = chosen[name]
        locked.append(
            DebianPackage(
                name=name,
                version=stanza["Version"],
                architecture=stanza["Architecture"],
                archive=_archive_of(uri.url, mirrors),
                path=stanza["Filename"],
                size=int(stanza["Size"]),
                sha256=stanza["SHA256"],
                essential=name in essential,
            )
        )
    return tuple(locked)


def essential_closure(stanzas: Iterable[Stanza]) -> frozenset[str]:
    """The Essential packages among those chosen, and the chosen ones that they depend on.

    Of alternatives (``a | b``) the first that was chosen counts; versions were apt's business.
    """
    chosen = {stanza["Package"]: stanza for stanza in stanzas}
    providers: dict[str, list[str]] = {}
    for name in sorted(chosen):
        for virtual in _names(chosen[name].get("Provides", "")):
            providers.setdefault(virtual[0], []).append(name)
    closure: set[str] = set()
    todo = [name for name in sorted(chosen) if chosen[name].get("Essential") == "yes"]
    while todo:
        name = todo.pop()
        if name in closure:
            continue
        closure.add(name)
        for field in ("Pre-Depends", "Depends"):
            for alternatives in _names(chosen[name].get(field, "")):
                options = [[a] if a in chosen else providers.get(a, [])[:1] for a in alternatives]
                todo += next((option for option in options if option), [])
    return frozenset(closure)


def glibc_of(packages: Iterable[DebianPackage]) -> str:
    """Version of the C library among the packages, e.g. ``2.36``."""
    for package in packages:
        if package.name == "libc6":
            match = re.match(r"(?:\d+:)?2\.(\d+)", package.version)
            if match:
                return f"2.{match[1]}"
    raise TfenvError(
        "the Debian packages hold no libc6, so no wheel can be chosen for them",
        remedy="take the base's packages from a Debian mirror: tfenv lock CELL --upgrade debian",
    )


def parse_stanzas(text: str) -> Iterator[dict[str, str]]:
    """Split the output of ``apt-cache show`` into packages."""
    for block in re.split(r"\n\s*\n", text.strip()):
        stanza: dict[str, str] = {}
        for line in block.splitlines():
            key, colon, value = line.partition(":")
            if colon and not line.startswith(" "):
                stanza[key] = value.strip()
        if "Package" in stanza:
            yield stanza


@dataclass(frozen=True)
class Uri:
    """What apt would fetch, as ``apt-get --print-uris`` names it."""

    url: str
    name: str
    version: str


def print_uris(text: str) -> Iterator[Uri]:
    """Parse lines of ``apt-get --print-uris``: 'URL' name_version_arch.deb size hash."""
    for line in text.splitlines():
        match = re.match(r"'([^']+)' ([^_\s]+)_([^_\s]+)_[^_\s]+\.deb \d+", line)
        if match:
            yield Uri(url=match[1], name=match[2], version=unquote(match[3]))


def _archive_of(url: str, mirrors: Mirrors) -> Archive:
    # The security mirror's URL may begin with the main one's.
    return "debian-security" if url.startswith(mirrors.security + "/") else "debian"


def _names(relation: str) -> Iterator[list[str]]:
    """``a (>= 1) | b:any, c`` -> [a, b], [c]."""
    for group in filter(None, (part.strip() for part in relation.split(","))):
        yield [re.split(r"[\s(\[:]", option.strip(), maxsplit=1)[0] for option in group.split("|")]


def keyring(exists: Callable[[Path], bool] = Path.exists) -> str:
    """The file with the keys of the Debian archive. Raises NotReadyError where this machine has none."""
    for path in _KEYRINGS:
        if exists(Path(path)):
            return path
    raise NotReadyError(
        "the keys of the Debian archive are not on this machine",
        remedy="apt-get install debian-archive-keyring",
    )
