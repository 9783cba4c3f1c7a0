"""The essential packages as one tar: what is in it, what is refused, and the same bytes every time."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from small import BASE_FILES, Members, ar, deb, file, folder, link, member, tarred
from tfenv.errors import IntegrityError
from tfenv.rootfs import write_essential_tar

EPOCH = 1_686_355_200


def made(folder_: Path, *packages: bytes) -> dict[str, tarfile.TarInfo]:
    """The members of the tar made of these packages, each once."""
    members = opened(folder_, *packages).getmembers()
    names = [member.name for member in members]
    assert len(set(names)) == len(names), "a path is there twice"
    return {member.name: member for member in members}


def opened(folder_: Path, *packages: bytes) -> tarfile.TarFile:
    debs = []
    for number, data in enumerate(packages):
        debs.append(folder_ / f"{number}.deb")
        debs[-1].write_bytes(data)
    write_essential_tar(debs, folder_ / "out.tar", epoch=EPOCH)
    return tarfile.open(folder_ / "out.tar")


def read(archive: tarfile.TarFile, name: str) -> bytes:
    stream = archive.extractfile(name)
    assert stream is not None
    return stream.read()


@pytest.mark.parametrize("kind", ["gz", "xz", ""])
def test_a_package_of_any_compression_is_unpacked(tmp_path: Path, kind: str) -> None:
    archive = opened(tmp_path, deb([folder("./"), folder("./etc/"), file("./etc/x", b"content")], kind))
    assert read(archive, "etc/x") == b"content"
    assert archive.getmember("etc").isdir()


def test_the_top_folders_are_links_into_usr_before_any_file_is(tmp_path: Path) -> None:
    names = list(made(tmp_path, deb([folder("./bin/"), file("./bin/sh", mode=0o755), file("./lib64/ld.so")])))
    out = made(tmp_path, deb([folder("./bin/"), file("./bin/sh", mode=0o755), file("./lib64/ld.so")]))
    for name in ("bin", "sbin", "lib", "lib64"):
        assert out[name].issym()
        assert out[name].linkname == f"usr/{name}"
        assert out[f"usr/{name}"].isdir()
        assert names.index(f"usr/{name}") < names.index(name)
    assert {"usr/bin/sh", "usr/lib64/ld.so"} <= out.keys()
    assert out["usr/bin/sh"].mode == 0o755
    assert not any(name.startswith(("bin/", "lib64/")) for name in out)


def test_names_that_only_look_like_the_top_folders_stay(tmp_path: Path) -> None:
    out = made(tmp_path, deb([file("./binary/x"), file("./opt/bin/y"), file("./usr/bin/z")]))
    assert {"binary/x", "opt/bin/y", "usr/bin/z"} <= out.keys()


def test_of_two_packages_with_one_path_the_first_wins(tmp_path: Path) -> None:
    archive = opened(tmp_path, deb([file("./bin/x", b"first")]), deb([file("./usr/bin/x", b"second")]))
    assert read(archive, "usr/bin/x") == b"first"


def test_links_are_kept_and_hard_links_follow_the_merge(tmp_path: Path) -> None:
    package = deb(
        [
            file("./bin/gunzip", b"program"),
            link("./bin/uncompress", "./bin/gunzip", tarfile.LNKTYPE),
            link("./usr/bin/which", "/etc/alternatives/which"),
            link("./lib/x.so", "../../up.so"),
        ]
    )
    archive = opened(tmp_path, package)
    hard = archive.getmember("usr/bin/uncompress")
    assert (hard.islnk(), hard.linkname) == (True, "usr/bin/gunzip")
    assert read(archive, "usr/bin/uncompress") == b"program"
    assert archive.getmember("usr/bin/which").linkname == "/etc/alternatives/which"
    assert archive.getmember("usr/lib/x.so").linkname == "../../up.so"


def test_documentation_is_left_out_and_licences_stay(tmp_path: Path) -> None:
    kept = ["./usr/share/doc/x/copyright", "./usr/share/doc/apt/examples/sources.list", "./usr/share/manual"]
    gone = [
        "./usr/share/doc/x/changelog.gz",
        "./usr/share/man/man1/x.1.gz",
        "./usr/share/info/x.info",
        "./usr/share/locale/de/LC_MESSAGES/x.mo",
        "./usr/share/lintian/overrides/x",
    ]
    out = made(tmp_path, deb([file(name) for name in kept + gone]))
    assert {name.removeprefix("./") for name in kept} <= out.keys()
    assert not {name.removeprefix("./") for name in gone} & out.keys()


def test_a_hard_link_to_what_is_left_out_becomes_a_file(tmp_path: Path) -> None:
    package = deb(
        [
            file("./usr/share/doc/x/README", b"text"),
            link("./usr/share/doc/x/copyright", "./usr/share/doc/x/README", tarfile.LNKTYPE),
        ]
    )
    archive = opened(tmp_path, package)
    assert archive.getmember("usr/share/doc/x/copyright").isreg()
    assert read(archive, "usr/share/doc/x/copyright") == b"text"


@pytest.mark.parametrize("name", ["../x", "./../x", "./a/../../x", "./bin/../../../x", "/../x"])
def test_a_path_that_leaves_the_root_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(IntegrityError, match="outside its root"):
        made(tmp_path, deb([file(name)]))


def test_a_hard_link_that_leaves_the_root_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IntegrityError):
        made(tmp_path, deb([file("./x"), link("./y", "../x", tarfile.LNKTYPE)]))


def test_an_absolute_path_is_taken_below_the_root(tmp_path: Path) -> None:
    assert "etc/x" in made(tmp_path, deb([file("/etc/x")]))


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


BROKEN = {
    "empty": b"",
    "an HTML page": b"<html>not found</html>",
    "no data.tar": ar({"debian-binary": b"2.0\n", "control.tar.gz": b"x"}),
    "a damaged ar header": BASE_FILES[:60] + b"?" * 200,
    "no numbers in the ar header": b"!<arch>\n" + b"x" * 60,
    "cut off": cut(BASE_FILES),
    "cut off gzip": cut(deb([file("./x", os.urandom(5000))], "gz")),
    "cut off tar": cut(deb([file("./x", b"x" * 5000)], "")),
    "no tar in it": ar({"debian-binary": b"2.0\n", "data.tar.xz": b"no archive"}),
    "an unknown compression": ar(
        {"debian-binary": b"2.0\n", "data.tar.zst": b"\x28\xb5\x2f\xfd" + b"x" * 99}
    ),
    "a hard link to nothing": deb([link("./y", "./x", tarfile.LNKTYPE)]),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_no_package_is_refused_by_name(tmp_path: Path, what: str) -> None:
    with pytest.raises(IntegrityError, match=r"0\.deb") as caught:
        made(tmp_path, BROKEN[what])
    assert "tfenv gc" in caught.value.remedy


def test_later_times_are_clamped_and_earlier_ones_and_owners_kept(tmp_path: Path) -> None:
    package = deb(
        [
            file("./old", mtime=1000, uid=0, gid=42, uname="root", gname="shadow"),
            file("./new", mtime=EPOCH + 10, mode=0o4755),
        ]
    )
    out = made(tmp_path, package)
    assert (out["old"].mtime, out["old"].gid, out["old"].gname) == (1000, 42, "")
    assert (out["new"].mtime, out["new"].mode) == (EPOCH, 0o4755)
    assert all(entry.mtime <= EPOCH for entry in out.values())


def test_dpkg_finds_its_empty_database(tmp_path: Path) -> None:
    out = made(tmp_path, deb([folder("./var/"), folder("./var/lib/"), folder("./var/lib/dpkg/")]))
    for name in ("var/lib/dpkg/status", "var/lib/dpkg/available"):
        assert (out[name].isreg(), out[name].size) == (True, 0)
    assert out["var/lib/dpkg/info"].isdir()


def test_a_file_with_holes_is_written_whole(tmp_path: Path) -> None:
    # A sparse member of the old GNU format: one piece of 512 bytes at 1024, 2048 in all.
    header = bytearray(tarred([(member("./sparse"), b"p" * 512)]))
    header[156:157] = b"S"
    header[386:410] = b"00000002000\0" + b"00000001000\0"
    header[483:495] = b"00000004000\0"
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header[:512])
    archive = opened(tmp_path, ar({"debian-binary": b"2.0\n", "data.tar": bytes(header)}))
    assert archive.getmember("sparse").isreg()
    assert read(archive, "sparse") == b"\0" * 1024 + b"p" * 512 + b"\0" * 512


def _touched(path: Path) -> None:
    os.utime(path, (1, 1))
    path.chmod(0o600)


@pytest.mark.parametrize("change", [_touched, lambda path: path.chmod(0o755)])
def test_the_same_packages_give_the_same_bytes(tmp_path: Path, change: Callable[[Path], None]) -> None:
    members: Members = [folder("./etc/"), file("./etc/a", b"a"), link("./bin/b", "a")]
    path = tmp_path / "x.deb"
    path.write_bytes(deb(members))
    write_essential_tar([path], tmp_path / "one.tar", epoch=EPOCH)
    change(path)
    before = os.umask(0o077)
    try:
        write_essential_tar([path], tmp_path / "two.tar", epoch=EPOCH)
    finally:
        os.umask(before)
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()


def test_other_contents_give_other_bytes(tmp_path: Path) -> None:
    opened(tmp_path, deb([file("./a", b"1")])).close()
    before = (tmp_path / "out.tar").read_bytes()
    opened(tmp_path, deb([file("./a", b"2")])).close()
    assert (tmp_path / "out.tar").read_bytes() != before
