"""Names that a bundle may hold, what a snapshot is called, and what a bundle's Dockerfile may do."""

from __future__ import annotations

from pathlib import Path

import pytest
from snapshots import SNAPSHOT
from tfenv.errors import IntegrityError, UsageError
from tfenv.snapshot import names
from tfenv.snapshot.archive import write
from tfenv.snapshot.choosing import InFolder, InRegistry, choose, parse, target
from tfenv.snapshot.guard import require_closed
from tfenv.snapshot.layout import Layout
from tfenv.snapshot.parts import Item


@pytest.mark.parametrize(
    "name",
    [
        "lock.json",
        "wheels/python/six-1.16.0-py2.py3-none-any.whl",
        "debs/rest/libstdc++6_12.2.0-14+deb12u1_amd64.deb",
        "debs/rest/zlib1g_1%3a1.2.13.dfsg-1_amd64.deb",
        "debs/rest/ca-certificates_20250419~deb12u2_all.deb",
        "base/0/blobs/sha256/" + "a" * 64,
    ],
)
def test_names_of_inputs_are_allowed(name: str) -> None:
    assert names.title(name, where="here") == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/etc/passwd",
        "../x",
        "wheels/../../x",
        "wheels/./x",
        "wheels//x",
        "wheels/",
        "wheels\\x",
        "C:\\x\\..",
        "a/b\nc",
        "a\0b",
        ".git/config",
        "wheels/.pth",
        "-rf",
        "a b",
        "a" * 300,
        "/".join("a" * 20),
        "wheels/\N{RIGHT-TO-LEFT OVERRIDE}x",
        None,
        7,
        ["a"],
    ],
)
def test_names_that_lead_elsewhere_are_not(name: object) -> None:
    with pytest.raises(IntegrityError, match="outside of its folder"):
        names.title(name, where="here")


@pytest.mark.parametrize(
    "value",
    ["", "sha256:", f"sha256:{'g' * 64}", f"sha256:{'a' * 63}", f"sha256:{'a' * 64}/../x", "sha512:a", None],
)
def test_digests_that_name_no_blob(value: object) -> None:
    with pytest.raises(IntegrityError, match="no sha256 digest"):
        names.digest(value, where="here")


@pytest.mark.parametrize("titles", [["a", "a"], ["a", "a/b"], ["a/b/c", "a/b"]])
def test_names_that_cannot_lie_together(titles: list[str]) -> None:
    with pytest.raises(IntegrityError, match="two files of one name"):
        names.together(titles, where="here")
    names.together(["a/b", "a/c", "b"], where="here")


# references

DIGEST = f"sha256:{'a' * 64}"


def test_what_a_snapshot_is_called(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    assert parse(str(folder)) == InFolder(folder=folder)
    assert parse(f"{folder}:2.15") == InFolder(folder=folder, name="2.15")
    assert parse(f"{folder}@{DIGEST}") == InFolder(folder=folder, name=DIGEST)
    odd = tmp_path / "a:b"
    odd.mkdir()
    assert parse(str(odd)) == InFolder(folder=odd)
    assert parse("registry.example.com/team/tfenv:x") == InRegistry(
        host="registry.example.com", path="team/tfenv", tag="x"
    )
    assert parse(f"localhost:5000/tfenv@{DIGEST}") == InRegistry(
        host="localhost:5000", path="tfenv", digest=DIGEST
    )


@pytest.mark.parametrize(
    "text", ["nowhere", "./nowhere", "/nowhere/at:all", "", "host/", "UPPER.example/Name"]
)
def test_what_is_no_snapshot(text: str) -> None:
    with pytest.raises(UsageError, match="no folder of snapshots"):
        parse(text)


def test_where_to_archive_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert target("new") == InFolder(folder=Path("new"))
    assert target("sub/new") == InFolder(folder=Path("sub/new"))
    assert target("localhost:5000/tfenv") == InRegistry(host="localhost:5000", path="tfenv")
    assert target("registry.example.com/tfenv:a") == InRegistry(
        host="registry.example.com", path="tfenv", tag="a"
    )
    (tmp_path / "a.b").mkdir()
    (tmp_path / "a.b" / "c").mkdir()
    assert target("a.b/c") == InFolder(folder=Path("a.b/c"))


def test_which_snapshot_of_a_folder(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "kept")
    first = write(layout, SNAPSHOT, [Item("a", b"1")])
    assert choose(layout, "").digest == first.digest
    second = write(layout, SNAPSHOT, [Item("a", b"2")])
    assert choose(layout, SNAPSHOT.cell).digest == second.digest
    assert choose(layout, first.digest).digest == choose(layout, first.digest[:15]).digest == first.digest
    for name in ("", "other", "sha256:", first.digest[:9]):
        with pytest.raises(UsageError) as caught:
            choose(layout, name)
        assert first.digest[:19] in caught.value.message and f":{SNAPSHOT.cell}" in caught.value.message


# Dockerfiles

GOOD = f"""\
# GENERATED
FROM scratch AS base
ADD essential.tar /
FROM nvidia/cuda:12.2@{DIGEST} AS cuda
RUN --network=none \\
    --mount=type=bind,from=wheels,target=/run/wheels \\
    --mount=type=bind,source=tools,target=/run/tools \\
    sh /run/tools/install.sh --from=nowhere
# a comment
FROM base
COPY --link --from=cuda /layer/ /
COPY --from=0 /layer/ /
"""


def test_a_closed_dockerfile() -> None:
    require_closed(GOOD, {"wheels", f"nvidia/cuda:12.2@{DIGEST}"})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("FROM scratch AS base", "FROM debian AS base"),
        ("FROM scratch AS base", "from --platform=linux/amd64 debian"),
        ("FROM base", "FROM elsewhere"),
        ("--from=cuda", "--from=docker.example/evil"),
        ("from=wheels", "from=evil"),
        ("ADD essential.tar /", "ADD https://example.com/x /"),
        ("ADD essential.tar /", "ADD git@example.com:x.git /"),
        ("# GENERATED", "# syntax=evil/frontend"),
        ("# GENERATED", "#escape=`"),
        ("# a comment", "ONBUILD RUN true"),
        ("# a comment", "RUN <<EOF"),
        ("# GENERATED", "// syntax=evil/frontend"),
        ("# GENERATED", '{"syntax": "evil/frontend"}'),
        ("# GENERATED\nFROM scratch", "\ufeffFROM evil"),
        ("RUN --network=none", "RUN --network=host"),
        ("RUN --network=none", "RUN --security=insecure"),
    ],
)
def test_a_dockerfile_that_fetches_is_refused(old: str, new: str) -> None:
    text = GOOD.replace(old, new, 1)
    assert text != GOOD
    with pytest.raises(IntegrityError, match="beyond the bundle"):
        require_closed(text, {"wheels", f"nvidia/cuda:12.2@{DIGEST}"})


def test_a_base_that_is_not_in_the_bundle_is_named() -> None:
    with pytest.raises(IntegrityError, match=r"nvidia/cuda:12\.2@sha256:a+ is not in the bundle"):
        require_closed(GOOD, {"wheels"})
