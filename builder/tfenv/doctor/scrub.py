"""A recording without what tells whose machine it is: numbers of boards, names, addresses, paths of people.

What two places have in common stays in common: the same UUID gets the same other one.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .evidence import Evidence, of_plain

_UUID = re.compile(r"\b([0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12})(?![0-9a-fA-F])")
_SERIAL = re.compile(
    r"<((?:\w*serial\w*|guid|host_id|tray_index|slot_number|pci_sub_system_id|pid|process_name|cluster_uuid"
    r"|chassis\w*|module_id|peer_type|pdi))>([^<]*)</\1>"
)
_LIKE_SERIAL = re.compile(r"(?=.*\d)[0-9A-Za-z-]{6,}")
_SERIAL_LINE = re.compile(r"(?im)^(\s*[\w ]*serial(?: number)?\s*[:=]\s*).*$")
_MAC = re.compile(r"(?<![\w:])(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}(?![\w:])")
_IPV6 = re.compile(
    r"(?<![\w:.])(?:(?:[0-9a-fA-F]{1,4}:){4,7}[0-9a-fA-F]{1,4}|(?:[0-9a-fA-F]{1,4}:){1,6}(?::[0-9a-fA-F]{1,4}){1,6})(?![\w:.])"
)
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_IPV4 = re.compile(rf"(?<![\w.])(?:{_OCTET}\.){{3}}{_OCTET}(?![\w.+~-])")
_URL = re.compile(r"\b((?!unix|npipe|fd)[a-z][a-z0-9+.]{1,20}://)[^\s\"'<>,]+", re.IGNORECASE)
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*")
_HOME = re.compile(
    r"/(home|Users|mnt/[a-z]/Users|export/home|scratch|data|work|nfs|gpfs|lustre|mnt|media|srv)/[^/\s:\"']+"
)
_LONG_HEX = re.compile(r"\b[0-9a-fA-F]{32,}\b")
_TOO_COMMON = frozenset(
    [
        "localhost",
        "root",
        "user",
        "nobody",
        "ubuntu",
        "debian",
        "linux",
        "vm",
        "host",
        "nvidia",
        "docker",
        "tensorflow",
        "tfenv",
        "node",
        "gpu",
        "none",
        "default",
        "admin",
        "test",
        "video",
        "render",
    ]
)


@dataclass
class Scrubber:
    """Replaces names that are known to be this machine's, and what looks like an address or a number.

    Args:
        names: host names and user names; home: this user's folder.
    """

    names: tuple[str, ...] = ()
    home: str = ""
    _uuids: dict[str, str] = field(default_factory=dict)
    _serials: set[str] = field(default_factory=set)

    def text(self, text: str, *, versions: bool = False) -> str:
        """The text without them. ``versions``: four numbers with dots are versions there, not addresses."""
        text = _UUID.sub(self._uuid, text)
        self._serials |= {
            value
            for name, value in _SERIAL.findall(text)
            if ("serial" in name or name == "guid") and _LIKE_SERIAL.fullmatch(value)
        }
        text = _SERIAL.sub(r"<\1>0</\1>", text)
        text = _SERIAL_LINE.sub(r"\g<1>0", text)
        text = _LONG_HEX.sub("0" * 32, text)
        for serial in self._serials:  # also where nothing says what it is
            text = text.replace(serial, "0")
        text = _MAC.sub("00:00:00:00:00:00", text)
        text = _IPV6.sub("::", text)
        text = _MAIL.sub("MAIL", text)
        text = _URL.sub(r"\1HOST", text)
        if not versions:
            text = _IPV4.sub("0.0.0.0", text)
        text = self.path(text)
        for name in self.names:
            text = re.sub(rf"(?<![\w]){re.escape(name)}(?![\w])", "NAME", text)
        return text

    def path(self, text: str) -> str:
        """The text without folders of people."""
        if self.home and self.home not in ("/", "/root"):
            text = text.replace(self.home, "/home/USER")
        return _HOME.sub(r"/\1/USER", text)

    def _uuid(self, match: re.Match[str]) -> str:
        known = match[1].lower()
        if known.startswith("00000000-0000-0000-0000-"):
            return match[1]  # scrubbed already
        number = self._uuids.setdefault(known, str(len(self._uuids) + 1))
        return f"00000000-0000-0000-0000-{number:0>12}"


def scrubbed(evidence: Evidence, scrubber: Scrubber) -> Evidence:
    """The evidence without them; what is decided from it stays the same."""
    from dataclasses import asdict

    def walk(value: Any, versions: bool) -> Any:
        if isinstance(value, str):
            return scrubber.text(value, versions=versions)
        if isinstance(value, Mapping):
            # Keys are paths, command lines and names of ours: a user may be called as one of these.
            return {
                scrubber.path(str(key)): walk(one, versions or _of_packages(str(key)))
                for key, one in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [walk(one, versions) for one in value]
        return value

    plain = asdict(evidence)
    walk(plain, False)  # once to learn the serial numbers, which other texts may hold too
    return of_plain(walk(plain, False))


def _of_packages(key: str) -> bool:
    return key.startswith(("dpkg-query", "rpm -qa", "ldconfig", "modinfo", "dkms", "system"))


def of_this_host(
    env: Mapping[str, str] = os.environ, host: Callable[[], str] = socket.gethostname
) -> Scrubber:
    """What is to be replaced on this machine: its names, its users, this user's folder."""
    name = host()
    names: list[str] = [
        name,
        name.split(".")[0],
        *(env.get(key, "") for key in ("USER", "LOGNAME", "SUDO_USER", "HOSTNAME")),
    ]
    return Scrubber(names=_worth(names + _people()), home=env.get("HOME", ""))


def _worth(names: Iterable[str]) -> tuple[str, ...]:
    wanted = {
        name for name in names if len(name) > 2 and name.lower() not in _TOO_COMMON and not name.isdecimal()
    }
    return tuple(sorted(wanted, key=lambda name: (-len(name), name)))


def _people() -> list[str]:
    import pwd

    return [entry.pw_name for entry in pwd.getpwall() if entry.pw_uid >= 1000 and entry.pw_name != "nobody"]
