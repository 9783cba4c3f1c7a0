"""Debian packages on top of an image: what apt is told of what is there."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import teams
from tfenv.debian import parse_stanzas
from tfenv.errors import UsageError
from tfenv.mirrors import Mirrors
from tfenv.team.packages import resolve_on_top, status

MIRRORS = Mirrors(debian="http://d.test/debian", security="http://d.test/debian-security", keyring="/k.gpg")
OFFERED = """\
Package: mawk
Version: 1.3.5
Provides: awk
Depends: libc6 (>= 9)
Essential: no

Package: libgl1
Version: 1.6.0-1
Architecture: amd64
Filename: pool/main/libg/libglvnd/libgl1_1.6.0-1_amd64.deb
Size: 10
SHA256: %s
""" % ("a" * 64)


def test_installed_packages_have_the_locked_version_and_the_mirrors_virtual_names() -> None:
    text = status([teams.deb("mawk", "1.3.4"), teams.deb("gone", "2.0")], list(parse_stanzas(OFFERED)))
    mawk, gone = parse_stanzas(text)
    assert mawk["Version"] == "1.3.4" and mawk["Provides"] == "awk"
    assert mawk["Status"] == gone["Status"] == "install ok installed"
    assert "Depends" not in mawk, "what is installed has what it needs"


class Apt:
    """apt, as far as it is asked."""

    def __init__(self, wanted: str) -> None:
        self.wanted, self.status = wanted, ""

    def __call__(self, argv: list[str], **more: Any) -> subprocess.CompletedProcess[str]:
        out = ""
        if argv[0] == "apt-cache":
            out = OFFERED
        elif "update" in argv:
            lists = Path(more["env"]["APT_CONFIG"]).parent / "lists"
            (lists / "d_InRelease").write_text("Date: Sat, 29 Nov 2025 10:00:00 UTC\n")
        elif "install" in argv:
            self.status = (Path(more["env"]["APT_CONFIG"]).parent / "status").read_text()
            out = self.wanted
        return subprocess.CompletedProcess(argv, 0, out, "")


def test_only_what_is_added_comes_back() -> None:
    apt = Apt("'http://d.test/debian/pool/libgl1.deb' libgl1_1.6.0-1_amd64.deb 10 SHA256:aa\n")
    found, at = resolve_on_top("bookworm", [teams.deb("mawk")], ["libgl1"], {}, apt, mirrors=MIRRORS)
    assert [(p.name, p.version, p.essential) for p in found] == [("libgl1", "1.6.0-1", False)]
    assert at == "2025-11-29T10:00:00Z" and "Package: mawk" in apt.status


def test_what_is_there_already_adds_nothing() -> None:
    found, _ = resolve_on_top("bookworm", [teams.deb("mawk")], ["mawk"], {}, Apt(""), mirrors=MIRRORS)
    assert found == ()


def test_a_package_that_does_not_exist_is_told() -> None:
    def refuse(argv: list[str], **more: Any) -> subprocess.CompletedProcess[str]:
        if "install" in argv:
            return subprocess.CompletedProcess(argv, 100, "", "E: Unable to locate package nobody")
        return Apt("")(argv, **more)

    with pytest.raises(UsageError, match="no package nobody"):
        resolve_on_top("bookworm", [], ["nobody"], {}, refuse, mirrors=MIRRORS)
