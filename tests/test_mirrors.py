from __future__ import annotations

from typing import Any

import pytest
from tfenv.errors import NotReadyError
from tfenv.mirrors import Mirrors, deb_urls, find_mirrors
from tfenv.model import DebianPackage

MIRRORS = Mirrors(debian="http://m.example/debian", security="http://m.example/debian-security", keyring="/k")


def mirrors(files: dict[str, str], **env: str) -> Mirrors:
    folder = "/etc/apt/sources.list.d/"
    names = sorted(f.removeprefix(folder) for f in files if f.startswith(folder))
    return find_mirrors("bookworm", env, files.get, lambda _: names)


DEB822 = """\
# the usual
Types: deb deb-src
# a comment between
URIs: http://deb.domain.example/debian
 http://second.example/debian
Suites: trixie
Components: main
Signed-By: /usr/share/keyrings/d.gpg

Types: deb
URIs: http://deb.domain.example/debian-security/
Suites: trixie-security
Components: main

Types: deb
URIs: https://vendor.example/apt
Suites: x
Components: main
"""


def test_mirrors_of_deb822_sources() -> None:
    found = mirrors({"/etc/apt/sources.list.d/debian.sources": DEB822})
    assert found == Mirrors(
        debian="http://deb.domain.example/debian",
        security="http://deb.domain.example/debian-security",
        snapshot="http://snapshot.domain.example",
        keyring="/usr/share/keyrings/d.gpg",
    )


def test_mirrors_of_one_line_sources() -> None:
    text = (
        "# deb http://off.example/debian x main\n"
        "deb-src http://src.example/debian x main\n"
        "deb [arch=amd64 signed-by=/k.gpg] https://own.example/path/debian x main\n"
    )
    found = mirrors({"/etc/apt/sources.list": text})
    assert found.debian == "https://own.example/path/debian"
    assert found.security == "https://own.example/path/debian-security"
    assert found.keyring == "/k.gpg"
    assert found.snapshot is None  # no guess for a mirror that is not the distribution's own


def test_mirror_lists_are_followed() -> None:
    files = {
        "/etc/apt/sources.list": "deb mirror+file:/etc/apt/mirrors/d.list x main\n",
        "/etc/apt/mirrors/d.list": "# list\nhttps://one.example/debian\tpriority:1\n",
    }
    assert mirrors(files).debian == "https://one.example/debian"


def test_disabled_and_foreign_sources_do_not_count() -> None:
    disabled = DEB822.replace("Types: deb\n", "Types: deb\nEnabled: no\n").replace(
        "Types: deb deb-src", "Types: deb-src"
    )
    for files in (
        {},
        {"/etc/apt/sources.list.d/d.sources": disabled},
        {"/etc/apt/sources.list": "deb http://archive.example/ubuntu noble main\n"},
        {"/etc/apt/sources.list.d/d.disabled": DEB822},
        {"/etc/apt/sources.list": "deb https://vendor.example/linux/debian bookworm stable # no main\n"},
        {"/etc/apt/sources.list.d/v.sources": DEB822.replace("Components: main", "Components: stable")},
    ):
        with pytest.raises(NotReadyError, match="no Debian mirror") as caught:
            mirrors(files)
        assert "TFENV_DEBIAN_MIRROR" in caught.value.remedy


def test_the_users_variables_win() -> None:
    files = {"/etc/apt/sources.list.d/debian.sources": DEB822}
    found = mirrors(files, TFENV_DEBIAN_MIRROR="http://mine.example/debian/")
    assert (found.debian, found.security) == (
        "http://mine.example/debian",
        "http://mine.example/debian-security",
    )
    assert found.keyring is None
    found = mirrors(
        {},
        TFENV_DEBIAN_MIRROR="http://mine.example/debian",
        TFENV_DEBIAN_SECURITY_MIRROR="http://sec.example/debian-security",
        TFENV_DEBIAN_SNAPSHOT="http://snap.example/",
    )
    assert found.security == "http://sec.example/debian-security"
    assert found.snapshot == "http://snap.example"


def deb(name: str = "a", version: str = "1", **more: Any) -> DebianPackage:
    values: dict[str, Any] = {
        "architecture": "amd64",
        "archive": "debian",
        "path": f"pool/main/a/{name}_{version}_amd64.deb",
        "size": 1,
        "sha256": "0" * 64,
        "essential": False,
    }
    return DebianPackage(name=name, version=version, **{**values, **more})


def test_a_deb_is_looked_for_on_the_mirror_and_then_in_snapshots() -> None:
    security = deb(archive="debian-security", path="pool/updates/main/a/a_1+b~1_amd64.deb")
    own = Mirrors(debian="http://d", security="http://s", snapshot="http://snap")
    file = "pool/updates/main/a/a_1%2bb%7e1_amd64.deb"
    assert deb_urls(security, own, "2025-11-30T11:00:00Z") == (
        f"http://s/{file}",
        f"http://snap/archive/debian-security/20251130T110000Z/{file}",
        f"http://snap/archive/debian-security/20251201T110000Z/{file}",
    )
    assert len(deb_urls(security, MIRRORS, "2025-11-30T11:00:00Z")) == 1


UBUNTU = {
    "/etc/apt/sources.list": "# Ubuntu sources have moved to ubuntu.sources\n",
    "/etc/apt/sources.list.d/ubuntu.sources": (
        "Types: deb\nURIs: http://archive.example/ubuntu/\nSuites: noble noble-updates\n"
        "Components: main universe\nSigned-By: /usr/share/keyrings/ubuntu-archive-keyring.gpg\n"
    ),
}
PROGRAM = {"/usr/sbin/debootstrap": '#!/bin/sh\nDEF_MIRROR="http://deb.domain.example/debian"\n'}
SCRIPT = "/usr/share/debootstrap/scripts/bookworm"


def test_ubuntu_takes_the_mirror_that_its_bootstrapper_would() -> None:
    found = mirrors(
        {**UBUNTU, **PROGRAM, SCRIPT: "mirror_style release\n# default_mirror http://no/debian\n"}
    )
    assert found == Mirrors(
        debian="http://deb.domain.example/debian",
        security="http://deb.domain.example/debian-security",
        snapshot="http://snapshot.domain.example",
    )
    assert deb_urls(deb(archive="debian-security", path="pool/a.deb"), found, "2025-11-30T11:00:00Z")[0] == (
        "http://deb.domain.example/debian-security/pool/a.deb"
    )


def test_the_suites_script_wins_over_the_programs_default() -> None:
    found = mirrors({**UBUNTU, **PROGRAM, SCRIPT: "\tdefault_mirror https://script.example/debian/\n"})
    assert found.debian == "https://script.example/debian"
    debian = {"/etc/apt/sources.list": "deb http://own.example/debian x main\n"}
    assert mirrors({**debian, **PROGRAM}).debian == "http://own.example/debian"
    mine = mirrors({**UBUNTU, **PROGRAM}, TFENV_DEBIAN_MIRROR="http://mine.example/debian")
    assert mine.debian == "http://mine.example/debian"


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"/usr/sbin/debootstrap": "DEF_MIRROR=http://archive.example/ubuntu\n"},
        {"/usr/sbin/debootstrap": 'DEF_MIRROR="$ELSEWHERE/debian"\n'},
        {SCRIPT: "default_mirror http://archive.example/ubuntu\n"},
    ],
)
def test_ubuntu_without_a_bootstrapper_is_told_what_to_install(more: dict[str, str]) -> None:
    with pytest.raises(NotReadyError, match="no Debian mirror") as caught:
        mirrors({**UBUNTU, **more})
    assert "apt-get install debootstrap" in caught.value.remedy
    assert "TFENV_DEBIAN_MIRROR" in caught.value.remedy
