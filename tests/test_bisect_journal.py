"""The journal of a bisection: what is on disk is known, whatever happened to the process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tfenv.bisect.journal import NAME, Journal, Refused, Verdict, forget, identity, latest, read_question
from tfenv.bisect.model import Pin, PinSet
from tfenv.errors import NotReadyError, UsageError

QUESTION = {"good": "a", "bad": "b", "command": ["true"]}
PINS = PinSet.of([Pin(name="a", version="1", hashes=("c" * 64,))])
OTHER = PinSet.of([Pin(name="a", version="2")])


def fill(folder: Path) -> None:
    with Journal(folder, QUESTION) as journal:
        assert not journal.resumed
        journal.resolution("key", PINS)
        journal.resolution("none", Refused("no solution"))
        journal.metadata({"a==1": ["b>=2"]})
        journal.listing("moments", ("2024-01-01T00:00:00Z",))
        journal.verdict(PINS, Verdict(word="bad", why="exit code 1", log="logs/001.txt", built=True))


def known(journal: Journal) -> tuple[object, ...]:
    return journal.resolved, journal.requires, journal.lists, journal.verdicts


def test_everything_is_known_again(tmp_path: Path) -> None:
    fill(tmp_path)
    with Journal(tmp_path, QUESTION) as journal:
        assert journal.resumed
        assert journal.resolved == {"key": PINS, "none": Refused("no solution")}
        assert journal.requires == {"a==1": ("b>=2",)}
        assert journal.lists == {"moments": ("2024-01-01T00:00:00Z",)}
        assert journal.verdicts[PINS.digest].why == "exit code 1"
        assert OTHER.digest not in journal.verdicts
    assert read_question(tmp_path) == QUESTION


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(cut=st.integers(0, 10_000))
def test_cut_off_anywhere_it_goes_on_from_the_last_whole_line(tmp_path: Path, cut: int) -> None:
    folder = tmp_path / "cut"
    (folder / NAME).unlink(missing_ok=True)
    fill(folder)
    whole = (folder / NAME).read_bytes()
    (folder / NAME).write_bytes(whole[: cut % (len(whole) + 1)])
    with Journal(folder, QUESTION) as journal:
        journal.verdict(OTHER, Verdict(word="good"))
    with Journal(folder, QUESTION) as journal:
        assert journal.verdicts[OTHER.digest].word == "good"
    lines = (folder / NAME).read_bytes().splitlines()
    assert all(json.loads(line) for line in lines)


def test_what_is_known_is_not_written_twice(tmp_path: Path) -> None:
    with Journal(tmp_path, QUESTION) as journal:
        journal.metadata({"a==1": ["b"]})
        before = (tmp_path / NAME).read_bytes()
        journal.metadata({"a==1": ["b"]})
        assert (tmp_path / NAME).read_bytes() == before


@pytest.mark.parametrize(
    "text",
    [
        "[]\n",
        "no json\n",
        '{"question": {}, "format": 1}\n',
        '{"question": %s, "format": 99}\n',
        '{"question": %s, "format": 1}\n{"verdict": "x", "word": "perhaps"}\n',
        '{"question": %s, "format": 1}\n{"resolved": "x", "pins": [[1]]}\n',
        '{"question": %s, "format": 1}\n[1]\n',
        '{"question": %s, "format": 1}\n' + "[" * 100_000 + "\n",
    ],
)
def test_a_journal_of_something_else_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text.replace("%s", json.dumps(QUESTION)))
    before = (tmp_path / NAME).read_bytes()
    with pytest.raises(UsageError, match="cannot be gone on with"), Journal(tmp_path, QUESTION):
        pass
    assert (tmp_path / NAME).read_bytes() == before


def test_two_at_once_are_one_too_many(tmp_path: Path) -> None:
    with (
        Journal(tmp_path, QUESTION),
        pytest.raises(NotReadyError, match="another tfenv"),
        Journal(tmp_path, QUESTION),
    ):
        pass
    with Journal(tmp_path, QUESTION):
        pass  # it is free again


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotReadyError, match="cannot write"), Journal(tmp_path / "file" / "x", QUESTION):
        pass


def test_a_full_disk_says_so(tmp_path: Path) -> None:
    with Journal(tmp_path, QUESTION) as journal:
        assert journal._file is not None
        journal._file.close()
        journal._file = open("/dev/full", "ab")  # noqa: PTH123, SIM115
        with pytest.raises(NotReadyError, match="No space left"):
            journal.verdict(PINS, Verdict(word="good"))
        journal._file = None


def test_killed_at_any_moment_nothing_that_was_told_is_lost(tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        from tfenv.bisect.journal import Journal, Verdict
        from tfenv.bisect.model import Pin, PinSet
        with Journal(Path(sys.argv[1]), {"a": 1}) as journal:
            for number in range(10**9):
                pins = PinSet.of([Pin(name="a", version=str(number))])
                journal.verdict(pins, Verdict(word="good", why="x" * 2000))
                print(pins.digest, flush=True)
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    told = [process.stdout.readline().strip() for _ in range(20)]
    os.kill(process.pid, signal.SIGKILL)
    told += [line.strip() for line in process.stdout.read().splitlines() if len(line) == 16]
    process.wait()
    process.stdout.close()
    with Journal(tmp_path, {"a": 1}) as journal:
        assert set(told) <= set(journal.verdicts)


def test_the_latest_is_gone_on_with(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no bisection"):
        latest(tmp_path)
    for number, name in enumerate(("new", "old")):
        fill(tmp_path / name)
        os.utime(tmp_path / name / NAME, (2000 - number, 2000 - number))
    assert latest(tmp_path) == tmp_path / "new"
    with pytest.raises(UsageError, match="no bisection"):
        read_question(tmp_path / "nothing")


def test_the_same_question_has_the_same_name() -> None:
    again: dict[str, Any] = dict(reversed(QUESTION.items()))
    assert identity(again) == identity(QUESTION) != identity({**QUESTION, "bad": "c"})


def test_what_somebody_works_on_is_not_forgotten(tmp_path: Path) -> None:
    with Journal(tmp_path / "a", {"q": 1}), pytest.raises(NotReadyError, match="another tfenv"):
        forget(tmp_path / "a")
    assert (tmp_path / "a" / NAME).exists()
    forget(tmp_path / "a")
    assert not (tmp_path / "a").exists()
    forget(tmp_path / "a")
