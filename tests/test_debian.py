from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tfenv.apt import apt_proxies
from tfenv.debian import (
    essential_closure,
    glibc_of,
    newest_date,
    parse_stanzas,
    resolve_debian,
)
from tfenv.errors import NotReadyError, TfenvError, UsageError
from tfenv.mirrors import Mirrors
from tfenv.model import DebianPackage
from tfenv.uv import platform_for

MIRRORS = Mirrors(debian="http://m.example/debian", security="http://m.example/debian-security", keyring="/k")


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


STANZAS = """\
Package: base
Version: 1:1.0+b1
Architecture: amd64
Essential: yes
Pre-Depends: libc6 (>= 2.34), gawk | awk
Depends: debconf-2.0:any | debconf
Filename: pool/main/b/base_1.0+b1_amd64.deb
Size: 11
SHA256: {}
Description: two
 lines: here

Package: libc6
Version: 2.36-9
Architecture: amd64
Filename: pool/main/l/libc6_2.36-9_amd64.deb
Size: 12
SHA256: {}

Package: mawk
Version: 1
Architecture: amd64
Provides: awk
Depends: base
Filename: pool/main/m/mawk_1_amd64.deb
Size: 13
SHA256: {}

Package: cdebconf
Version: 1
Architecture: all
Provides: debconf-2.0 (= 2)
Filename: pool/main/c/cdebconf_1_all.deb
Size: 14
SHA256: {}

Package: python3.11
Version: 3.11~1
Architecture: amd64
Depends: libc6
Filename: pool/updates/main/p/python3.11_3.11~1_amd64.deb
Size: 15
SHA256: {}
""".format(*(c * 64 for c in "abcde"))

URIS = """\
'http://m.example/debian/pool/main/p/python3.11_3.11%7e0_amd64.deb' odd line
'http://m.example/debian-security/pool/updates/main/p/p3.11_3.11%7e1_amd64.deb' python3.11_3.11~1_amd64.deb 15
'http://m.example/debian/pool/main/b/base_1.0%2bb1_amd64.deb' base_1%3a1.0+b1_amd64.deb 11 MD5Sum:0
'http://m.example/debian/pool/main/l/libc6_2.36-9_amd64.deb' libc6_2.36-9_amd64.deb 12 MD5Sum:0
'http://m.example/debian/pool/main/m/mawk_1_amd64.deb' mawk_1_amd64.deb 13 MD5Sum:0
'http://m.example/debian/pool/main/c/cdebconf_1_all.deb' cdebconf_1_all.deb 14 MD5Sum:0
"""


def test_stanzas_ignore_continuation_lines() -> None:
    base = next(iter(parse_stanzas(STANZAS)))
    assert base["Version"] == "1:1.0+b1"
    assert " lines" not in base
    assert list(parse_stanzas("")) == []


def test_the_essential_closure_follows_alternatives_and_provides() -> None:
    stanzas = list(parse_stanzas(STANZAS))
    assert essential_closure(stanzas) == {"base", "libc6", "mawk", "cdebconf"}
    assert essential_closure(s for s in stanzas if s["Package"] != "base") == frozenset()


class FakeApt:
    """Answers as apt does; keeps what the scratch root held."""

    def __init__(self, fail: str = "", settings: str = "", absent: bool = False) -> None:
        self.fail, self.settings, self.absent = fail, settings, absent
        self.calls: list[list[str]] = []
        self.conf = self.sources = ""
        self.dates = ["Sat, 15 Nov 2025 09:00:00 UTC", "Sun, 30 Nov 2025 08:12:01 UTC"]

    def __call__(self, command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        if self.absent:
            raise FileNotFoundError(2, "No such file", command[0])
        self.calls.append(list(command))
        out, code, err = "", 0, ""
        if command[0] == "apt-config":
            out = self.settings
        else:
            conf = Path(options["env"]["APT_CONFIG"])
            self.conf, self.sources = conf.read_text(), (conf.parent / "sources.list").read_text()
            if self.fail:
                code, err = 100, self.fail
            elif "update" in command:
                for number, date in enumerate(self.dates):
                    file = conf.parent / f"lists/m.example_{number}_InRelease"
                    file.write_text(f"-----BEGIN PGP\n\nOrigin: Debian\nDate: {date}\nValid-Until: x\n")
            elif "install" in command:
                out = URIS
            elif command[0] == "apt-cache":
                out = STANZAS
        return subprocess.CompletedProcess(list(command), code, out, err)


def resolve(apt: FakeApt) -> tuple[DebianPackage, ...]:
    return resolve_debian("bookworm", ["python3.11"], {"PATH": "/bin"}, apt, mirrors=MIRRORS)[0]


def test_the_time_is_that_of_the_newest_index() -> None:
    _, at = resolve_debian("bookworm", ["python3.11"], {"PATH": "/bin"}, FakeApt(), mirrors=MIRRORS)
    assert at == "2025-11-30T08:12:01Z"
    assert newest_date(["Date: Sun, 30 Nov 2025 09:12:01 +0100\n"]) == "2025-11-30T08:12:01Z"


@pytest.mark.parametrize("dates", [[], ["yesterday"]])
def test_indexes_without_a_time_are_refused(dates: list[str]) -> None:
    apt = FakeApt()
    apt.dates = dates
    with pytest.raises(TfenvError, match="do not say when"):
        resolve(apt)


def test_packages_are_locked_by_name_with_archive_path_and_hash() -> None:
    packages = resolve(FakeApt())
    assert [p.name for p in packages] == ["base", "cdebconf", "libc6", "mawk", "python3.11"]
    assert packages[0] == DebianPackage(
        name="base",
        version="1:1.0+b1",
        architecture="amd64",
        archive="debian",
        path="pool/main/b/base_1.0+b1_amd64.deb",
        size=11,
        sha256="a" * 64,
        essential=True,
    )
    python = packages[-1]
    assert (python.archive, python.essential, python.version) == ("debian-security", False, "3.11~1")
    assert packages == resolve(FakeApt())


def test_apt_sees_the_scratch_root_only() -> None:
    apt = FakeApt(
        settings='Acquire::http::Proxy "http://p.example:3142";\n'
        'APT::Update::Post-Invoke:: "rm -rf /";\nDir::Etc::parts "/etc/apt/apt.conf.d";\n'
    )
    resolve(apt)
    assert apt.sources.splitlines() == [
        "deb [signed-by=/k arch=amd64] http://m.example/debian bookworm main",
        "deb [signed-by=/k arch=amd64] http://m.example/debian bookworm-updates main",
        "deb [signed-by=/k arch=amd64] http://m.example/debian-security bookworm-security main",
    ]
    assert 'Acquire::http::Proxy "http://p.example:3142";' in apt.conf
    assert "Post-Invoke" not in apt.conf
    assert "/etc/apt" not in apt.conf
    install = next(c for c in apt.calls if "install" in c)
    assert install[-3:] == ["install", "?essential", "python3.11"]
    shown = next(c for c in apt.calls if c[0] == "apt-cache")
    assert "base=1:1.0+b1" in shown


@pytest.mark.parametrize(
    ("output", "kind", "says"),
    [
        ("E: Unable to locate package pythn3.11", UsageError, "pythn3.11"),
        ("Err:1 http://u:p@m.example x\n  Could not resolve 'm.example'", NotReadyError, "reached"),
        ("W: GPG error: NO_PUBKEY 0E98404D386FA1D9", NotReadyError, "signature"),
        ("E: something else", TfenvError, "something else"),
    ],
)
def test_apts_reason_is_told(output: str, kind: type[TfenvError], says: str) -> None:
    with pytest.raises(TfenvError) as caught:
        resolve(FakeApt(fail=output))
    assert type(caught.value) is kind
    assert says in caught.value.message
    assert "u:p@" not in caught.value.message


def test_without_apt_the_remedy_is_another_machine() -> None:
    with pytest.raises(NotReadyError, match="resolved with apt"):
        resolve(FakeApt(absent=True))


def test_apts_proxies() -> None:
    settings = 'Acquire::http::Proxy "http://p:1";\nAcquire::https::Proxy "DIRECT";\nAcquire::http "";\n'
    assert apt_proxies({}, FakeApt(settings=settings)) == {"http": "http://p:1"}
    assert apt_proxies({}, FakeApt(absent=True)) == {}


def test_wheels_follow_the_bases_glibc() -> None:
    assert glibc_of([deb(), deb("libc6", "2.36-9+deb12u14")]) == "2.36"
    assert platform_for("2.36") == "x86_64-manylinux_2_36"
    with pytest.raises(TfenvError, match="no libc6"):
        glibc_of([deb()])
