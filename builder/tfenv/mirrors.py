"""Where this host gets Debian from, and where each locked .deb may lie."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from tfenv.apt_sources import ListDir, ReadFile, read_text, sources
from tfenv.errors import NotReadyError
from tfenv.model import DebianPackage

# Of debootstrap, "the distribution's own bootstrapper".
_PROGRAM = "/usr/sbin/debootstrap"
_SCRIPTS = "/usr/share/debootstrap/scripts"

Archive = Literal["debian", "debian-security"]


@dataclass(frozen=True, kw_only=True)
class Mirrors:
    """Where this host gets Debian from. URLs without a trailing slash; may hold secrets.

    Args:
        snapshot: root of the distribution's snapshot service, or None where none is known.
        keyring: file that signs both archives, or None for the distribution's usual one.
    """

    debian: str
    security: str
    snapshot: str | None = None
    keyring: str | None = None

    def url(self, archive: Archive) -> str:
        """The root of that archive."""
        return self.debian if archive == "debian" else self.security


def find_mirrors(
    suite: str,
    env: Mapping[str, str] | None = None,
    read_file: ReadFile | None = None,
    list_dir: ListDir | None = None,
) -> Mirrors:
    """The mirrors of this host: $TFENV_DEBIAN_MIRROR and its companions, else its apt sources', else
    the one from which debootstrap would take ``suite``: on Ubuntu, apt itself knows none.

    Raises NotReadyError where none of them names a Debian mirror.
    """
    env = os.environ if env is None else env
    found: dict[str, tuple[str, str | None]] = {}
    for source in sources(read_file, list_dir):
        name = urlsplit(source.uri).path.rstrip("/").rsplit("/", 1)[-1]
        if name in ("debian", "debian-security"):
            found.setdefault(name, (source.uri.rstrip("/"), source.signed_by))
    own, keyring = found.get("debian", ("", None))
    debian = env.get("TFENV_DEBIAN_MIRROR", "").rstrip("/") or own
    debian = debian or _bootstrap_default(suite, read_file or read_text)
    if not debian:
        raise NotReadyError(
            "this machine's apt sources name no Debian mirror, and there is no debootstrap that would",
            remedy="apt-get install debootstrap (only its default mirror is read), or set "
            "TFENV_DEBIAN_MIRROR=<URL of a mirror, ending in /debian> (and, if its security archive "
            "is not beside it, TFENV_DEBIAN_SECURITY_MIRROR)",
        )
    security = env.get("TFENV_DEBIAN_SECURITY_MIRROR", "").rstrip("/")
    if not security and not env.get("TFENV_DEBIAN_MIRROR"):
        security = found.get("debian-security", ("", None))[0]
    return Mirrors(
        debian=debian,
        security=security or re.sub(r"/debian$", "", debian) + "/debian-security",
        snapshot=env.get("TFENV_DEBIAN_SNAPSHOT", "").rstrip("/") or _snapshot_of(debian),
        keyring=None if env.get("TFENV_DEBIAN_MIRROR") else keyring,
    )


def _bootstrap_default(suite: str, read: ReadFile) -> str:
    """The mirror in debootstrap's script for the suite; Debian's leave it to the program's default."""
    script = read(f"{_SCRIPTS}/{suite}") or ""
    found = re.findall(r"^[ \t]*default_mirror[ \t]+(\S+)", script, re.MULTILINE)
    found += re.findall(r"^DEF_MIRROR=[\"']?([^\"'\s]+)", read(_PROGRAM) or "", re.MULTILINE)
    return next((url.rstrip("/") for url in found if re.fullmatch(r"https?://\S+/debian/?", url)), "")


def deb_urls(package: DebianPackage, mirrors: Mirrors, snapshot_at: str) -> tuple[str, ...]:
    """Where to look for that .deb: the mirror, then the snapshots around RFC 3339 ``snapshot_at``.

    The snapshot service answers with its last import before the time asked for, and a package
    that was new when it was locked is imported a little later: so the day after is asked too.
    """
    from datetime import datetime, timedelta, timezone

    path = package.path.replace("+", "%2b").replace("~", "%7e")
    urls = [f"{mirrors.url(package.archive)}/{path}"]
    if mirrors.snapshot:
        moment = datetime.fromisoformat(snapshot_at.replace("Z", "+00:00"))
        for days in (0, 1):
            at = (moment + timedelta(days=days)).astimezone(timezone.utc)
            urls.append(f"{mirrors.snapshot}/archive/{package.archive}/{at:%Y%m%dT%H%M%SZ}/{path}")
    return tuple(urls)


def _snapshot_of(mirror: str) -> str | None:
    """The distribution's own mirror ``deb.<domain>`` has its history at ``snapshot.<domain>``."""
    parts = urlsplit(mirror)
    host = parts.hostname or ""
    return f"{parts.scheme}://snapshot.{host[4:]}" if host.startswith("deb.") else None
