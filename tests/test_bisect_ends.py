"""What the user may name as good and bad, and the moments between two dates."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_lock import CELL, LOCKED
from tfenv.bisect.asking import Options, going_on, new_question
from tfenv.bisect.changes import environment_of
from tfenv.bisect.endpoints import Asked, Places, endpoint, moment, read_wanted
from tfenv.bisect.journal import Journal
from tfenv.bisect.model import Change, Pin, PinSet
from tfenv.bisect.moments import moments, versions_between
from tfenv.bisect.pinfiles import parse_requirements, pins_of_lock, read_requirements
from tfenv.bisect.question import question_from_plain
from tfenv.build import Host
from tfenv.console import Console
from tfenv.errors import TfenvError, UsageError
from tfenv.lockfile import dump_lock, requirements_lock
from tfenv.model import Cell, Lock, Wheel
from tfenv.simple_index import ProjectFile
from tfenv.store import Store
from tfenv.wheel_tags import supported_tags

ENVIRONMENT = environment_of("3.11")
NOW = datetime(2024, 6, 1, 12, tzinfo=timezone.utc)
SHA = "a" * 64
HOST = Host(Store(Path("/nowhere")), Console({}), {})


def parse(text: str) -> PinSet:
    return parse_requirements(text, ENVIRONMENT, where="file.txt")


def test_what_uv_and_pip_write() -> None:
    text = f"""# by uv
--index-url https://index.invalid/simple
numpy==1.26.4 \\
    --hash=sha256:{SHA} \\
    --hash=sha256:{"B" * 64}
    # via tensorflow
Typing_Extensions==4.9.0 ; python_version >= "3.8" --hash=sha256:{SHA}
tomli==2.0 ; python_version < "3.11"
wrapt==1.14.1  # a comment
"""
    found = parse(text)
    assert [pin.key for pin in found.pins] == ["numpy==1.26.4", "typing-extensions==4.9.0", "wrapt==1.14.1"]
    assert found.by_name["numpy"].hashes == (SHA, "b" * 64)
    assert not found.hashed


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("numpy", "not pinned"),
        ("numpy>=1", "not pinned"),
        ("numpy==1.*", "not pinned"),
        ("numpy @ https://x.invalid/numpy.whl", "not pinned"),
        ("-r other.txt", "not followed"),
        ("-e .", "not followed"),
        ("a==1\na==2", "twice"),
        ("", "names no package"),
        ("# nothing", "names no package"),
        ("a==1\n!!==2", "line 2"),
        ("\0", "line 1"),
    ],
)
def test_what_is_no_pin_names_its_line(text: str, match: str) -> None:
    with pytest.raises(UsageError, match=match):
        parse(text)


@settings(deadline=None)
@given(st.text())
def test_no_file_is_a_fault(text: str) -> None:
    try:
        parse(text)
    except UsageError as error:
        assert error.remedy


def places(*, cuda: bool = False) -> Places:
    def find(name: str) -> tuple[Cell, Lock]:
        if name != "2.15-cu12":
            raise UsageError(f"no cell {name}", remedy="tfenv list")
        return CELL, LOCKED

    return Places(lock=find, now=lambda: NOW, environment=ENVIRONMENT, cuda=cuda)


ASKED = Asked(label="r.in", requirements=("tensorflow==2.15.1",))


def test_a_date_is_the_end_of_that_day_but_never_tomorrow() -> None:
    assert moment("2024-03-01", NOW) == "2024-03-02T00:00:00Z"
    assert moment("2024-06-01", NOW) == moment("today", NOW) == "2024-06-01T12:00:00Z"
    assert moment("2024-03-01T10:30Z", NOW) == "2024-03-01T10:30:00Z"
    assert moment("2.15-cu12", NOW) == ""
    with pytest.raises(UsageError, match="no date"):
        moment("2024-02-30", NOW)


def test_ends_of_every_kind(tmp_path: Path) -> None:
    made = LOCKED
    folder = tmp_path / made.cell
    folder.mkdir()
    (folder / "lock.json").write_text(dump_lock(made))
    (tmp_path / "requirements.lock").write_text(requirements_lock(made))
    (tmp_path / "pins.txt").write_text("numpy==1\n")

    date = endpoint("2024-03-01", ASKED, places())
    assert (date.pins, date.requirements) == (None, ASKED.requirements)
    for text in ("2.15-cu12", str(folder), str(folder / "lock.json")):
        found = endpoint(text, None, places())
        assert found.pins is not None
        assert [p.name for p in found.pins.pins] == ["pip", "tensorflow"]  # neither CUDA nor the installer
        assert found.when == made.exclude_newer
        assert found.requirements == ("tensorflow==2.15.1", "pip")
    assert [p.name for p in (endpoint("2.15-cu12", None, places(cuda=True)).pins or PinSet(())).pins] == [
        "nvidia-cublas-cu12",
        "pip",
        "tensorflow",
    ]
    of_file = endpoint(str(tmp_path / "requirements.lock"), None, places())
    assert of_file.pins is not None and [p.name for p in of_file.pins.pins] == ["pip", "tensorflow"]
    assert endpoint(str(tmp_path / "pins.txt"), None, places()).pins == parse("numpy==1")
    (tmp_path / "freeze.txt").write_text("numpy==1\nnvidia-cublas-cu12==12.2\n")
    for cuda, count in ((False, 1), (True, 2)):
        frozen = endpoint(str(tmp_path / "freeze.txt"), None, places(cuda=cuda)).pins
        assert frozen is not None and len(frozen.pins) == count


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("2024-03-01", "nothing says what to resolve"),
        ("no-cell", "no cell"),
        ("no/folder", "there is no"),
        ("gone.txt", "there is no"),
        ("empty", "holds no lock"),
        ("bad.json", "cannot be used"),
        ("binary.txt", "cannot be read"),
    ],
)
def test_ends_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, match: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TfenvError, match=match) as raised:
        endpoint(text, None, places())
    assert raised.value.remedy


def test_source_archives_stay_source_archives() -> None:
    archive = Wheel(name="x", version="1", filename="x-1.tar.gz", size=1, sha256=SHA, layer="source")
    pin = pins_of_lock(replace(LOCKED, wheels=(archive,)), cuda=False).pins[0]
    assert (pin.source, pin.file) == (True, "x-1.tar.gz")


def test_requirements_that_need_not_be_pinned(tmp_path: Path) -> None:
    file = tmp_path / "r.in"
    file.write_text("# mine\ntensorflow==2.14.0\n\nnumpy>=1  # any\n")
    assert read_wanted(file) == ("tensorflow==2.14.0", "numpy>=1")
    for text, match in (("-c other", "no requirement"), ("", "asks for nothing"), ("a b", "line 1")):
        file.write_text(text)
        with pytest.raises(UsageError, match=match):
            read_wanted(file)
    with pytest.raises(UsageError, match="cannot be read"):
        read_wanted(tmp_path / "none")


TAGS = supported_tags("3.11", "x86_64-manylinux_2_36")


def file(name: str, when: str | None, *, yanked: str | None = None) -> ProjectFile:
    return ProjectFile(filename=name, url="", hashes={}, upload_time=when, yanked=yanked)


PAGES = {
    "a": [
        file("a-1.0-py3-none-any.whl", "2024-01-01T00:00:00.123456Z"),
        file("a-1.1-py3-none-any.whl", "2024-02-01T10:00:00.999999Z"),
        file("a-1.1.tar.gz", "2024-01-15T00:00:00Z"),
        file("a-1.2-cp39-cp39-manylinux_2_17_x86_64.whl", "2024-02-02T00:00:00Z"),  # of another Python
        file("a-1.3rc1-py3-none-any.whl", "2024-02-03T00:00:00Z"),
        file("a-1.4-py3-none-any.whl", "2024-02-04T00:00:00Z", yanked="broken"),
        file("a-1.5-py3-none-any.whl", "2024-03-01T00:00:00Z"),
        file("a-9.0-py3-none-any.whl", "2024-02-20T00:00:00Z"),  # beyond what was taken
        file("a-0.9.1-py3-none-any.whl", "2024-02-21T00:00:00Z"),
        file("not a wheel.whl", None),
    ],
    "same": [file("same-2-py3-none-any.whl", "2024-02-10T00:00:00Z")],
}
GOOD, BAD = parse("a==1.0\nsame==1"), parse("a==1.5\nsame==1")


def test_moments_are_those_of_releases_that_can_have_been_taken() -> None:
    found = moments(
        GOOD, BAD, "2024-01-10T00:00:00Z", "2024-04-01T00:00:00Z", files=PAGES.__getitem__, tags=TAGS
    )
    assert found == ("2024-02-01T10:00:01Z", "2024-03-01T00:00:01Z")
    back = moments(
        BAD, GOOD, "2024-04-01T00:00:00Z", "2024-01-10T00:00:00Z", files=PAGES.__getitem__, tags=TAGS
    )
    assert back == tuple(reversed(found))


def test_an_index_that_tells_no_times() -> None:
    pages = {"a": [file("a-1.1-py3-none-any.whl", None)]}
    with pytest.raises(LookupError, match=r"a 1\.1"):
        moments(GOOD, BAD, "2024-01-10T00:00:00Z", "2024-04-01T00:00:00Z", files=pages.__getitem__, tags=TAGS)


def test_files_without_a_time_are_not_looked_at_where_others_have_one() -> None:
    pages = {"a": [*PAGES["a"], file("a-1.2-py3-none-any.whl", None)]}
    found = moments(
        GOOD, BAD, "2024-01-10T00:00:00Z", "2024-04-01T00:00:00Z", files=pages.__getitem__, tags=TAGS
    )
    assert len(found) == 2


def test_versions_between_two() -> None:
    change = Change(name="a", before=Pin(name="a", version="1.0"), after=Pin(name="a", version="1.5"))
    assert versions_between(change, "", files=PAGES.__getitem__, tags=TAGS) == ("1.1",)
    assert versions_between(change, "2024-01-20T00:00:00Z", files=PAGES.__getitem__, tags=TAGS) == ()
    back = Change(name="a", before=change.after, after=change.before)
    assert versions_between(back, "", files=PAGES.__getitem__, tags=TAGS) == ("1.1",)
    new = replace(change, before=None)
    assert versions_between(new, "", files=PAGES.__getitem__, tags=TAGS) == ()


def options(**more: object) -> Options:
    given: dict[str, object] = {"before": (), "command": ("true",), "good": "a.txt", "bad": "b.txt"}
    return Options(**{**given, **more})  # type: ignore[arg-type]


def workspace() -> object:
    raise UsageError("no matrix.yaml", remedy="change to a folder that has one")


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"command": ()}, "no command"),
        ({"good": None}, "both ends"),
        ({"bad": ""}, "both ends"),
        ({"before": ("a", "b")}, "one cell"),
        ({"before": ("a",), "requirements": Path("r.in")}, "both given"),
        ({"gpus": True}, "--in image"),
        ({"where": "image"}, "needs a cell"),
        ({"python": "four"}, "no Python"),
        ({"python": "/no/such/python"}, "cannot be run"),
        ({"python": "/bin/sh"}, "no Python 3"),
        ({"before": ("cell",)}, r"no matrix\.yaml"),
    ],
)
def test_what_does_not_go_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, object], match: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(f"{name[0]}==1\n")
    with pytest.raises(UsageError, match=match):
        new_question(options(**more), workspace, HOST)  # type: ignore[arg-type]


def test_a_question_goes_through_its_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(f"{name[0]}==1\n")
    question = new_question(options(timeout=5.0), workspace, HOST)  # type: ignore[arg-type]
    with Journal(tmp_path / "root" / question.name, question.plain()):
        pass
    typed = Options(before=(), command=(), resume="latest")
    assert going_on(tmp_path / "root", typed) == (question, tmp_path / "root" / question.name)
    assert question_from_plain(json.loads(json.dumps(question.plain()))) == question
    assert new_question(options(timeout=5.0), workspace, HOST).name == question.name  # type: ignore[arg-type]
    assert new_question(options(), workspace, HOST).name != question.name  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="whole question"):
        going_on(tmp_path / "root", replace(typed, good="a.txt"))
    with pytest.raises(UsageError, match="names no bisection"):
        going_on(tmp_path / "root", replace(typed, resume="../../etc"))


@pytest.mark.parametrize("name", ["/dev/zero", "missing", "."])
@pytest.mark.parametrize("read", [read_wanted, lambda path: read_requirements(path, {})])
def test_a_file_that_does_not_end_is_refused(
    tmp_path: Path, read: Callable[[Path], object], name: str
) -> None:
    with pytest.raises(UsageError):
        read(tmp_path / name)
