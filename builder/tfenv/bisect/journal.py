"""What a bisection has learnt, one line of JSON each, on disk before anything else is done.

A line that a kill or a full disk has cut off is dropped when the journal is opened again: what it said is
asked again. Everything else is known, so nothing is asked twice.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, cast, get_args

from tfenv.bisect.model import PinSet, Word, pins_from_plain, pins_to_plain
from tfenv.errors import NotReadyError, TfenvError, UsageError

FORMAT = 1
NAME = "journal.jsonl"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What was found out about one set of pins.

    Args:
        why: one line. log: the test's output, below the journal's folder; empty where none ran.
        built: whether an environment was made for it.
        seconds: of building and testing.
    """

    word: Word
    why: str = ""
    label: str = ""
    log: str = ""
    built: bool = False
    seconds: float = 0.0


@dataclass(frozen=True)
class Refused:
    """Why a resolver has no answer."""

    why: str


class Journal:
    """The journal of one question. Use it as a context manager.

    Args:
        folder: of this question alone.
        question: everything that was asked, as plain data.

    Raises:
        UsageError: it is of another question, or of another format. NotReadyError: somebody else
            works on it, or it cannot be written.
    """

    def __init__(self, folder: Path, question: Mapping[str, Any]) -> None:
        self.folder = folder
        self.question = json.loads(json.dumps(question))
        self.verdicts: dict[str, Verdict] = {}
        self.resolved: dict[str, PinSet | Refused] = {}
        self.requires: dict[str, tuple[str, ...]] = {}
        self.lists: dict[str, tuple[str, ...]] = {}
        self._file: IO[bytes] | None = None

    @property
    def resumed(self) -> bool:
        """Whether anything was known when it was opened, or has been learnt since."""
        return bool(self.verdicts or self.resolved)

    def __enter__(self) -> Journal:
        try:
            # The question and the logs are the user's own business.
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = (self.folder / NAME).open("a+b")
            claim(self._file, self.folder)
            self._read()
        except OSError as error:
            self._close()
            raise _unwritable(self.folder, error) from error
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def verdict(self, pins: PinSet, verdict: Verdict) -> None:
        """Keep what was found out about a set of pins."""
        self.verdicts[pins.digest] = verdict
        self._write({"verdict": pins.digest, **asdict(verdict)})

    def resolution(self, key: str, answer: PinSet | Refused) -> None:
        """Keep what a resolver answered."""
        self.resolved[key] = answer
        said = {"pins": pins_to_plain(answer)} if isinstance(answer, PinSet) else {"refused": answer.why}
        self._write({"resolved": key, **said})

    def metadata(self, requires: Mapping[str, Sequence[str]]) -> None:
        """Keep what packages ask for, by ``name==version``."""
        new = {key: tuple(lines) for key, lines in requires.items() if key not in self.requires}
        if new:
            self.requires.update(new)
            self._write({"requires": {key: list(lines) for key, lines in sorted(new.items())}})

    def listing(self, key: str, values: Sequence[str]) -> None:
        """Keep a list, e.g. of moments."""
        self.lists[key] = tuple(values)
        self._write({"list": key, "values": list(values)})

    def _read(self) -> None:
        assert self._file is not None
        self._file.seek(0)
        data = self._file.read()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            self._file.truncate(whole)
            self._file.seek(0, os.SEEK_END)
        lines = data[:whole].splitlines()
        if not lines:
            self._write({"question": self.question, "format": FORMAT})
            return
        try:
            head, *rest = (json.loads(line) for line in lines)
            if head["format"] != FORMAT:
                raise ValueError(f"its format is {head['format']!r}, this tfenv reads format {FORMAT}")
            if head["question"] != self.question:
                raise ValueError("it is of another question")
            for entry in rest:
                self._take(entry)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UsageError(
                f"the journal {self.folder / NAME} cannot be gone on with: {error}",
                remedy="type the command with --fresh, which forgets it",
            ) from error

    def _take(self, entry: Mapping[str, Any]) -> None:
        if "verdict" in entry:
            about = {key: entry[key] for key in Verdict.__dataclass_fields__}
            if about["word"] not in get_args(Word):
                raise ValueError(f"{about['word']!r} is no verdict")
            self.verdicts[entry["verdict"]] = Verdict(**about)
        elif "resolved" in entry:
            known = Refused(entry["refused"]) if "refused" in entry else pins_from_plain(entry["pins"])
            self.resolved[entry["resolved"]] = known
        elif "requires" in entry:
            self.requires.update({key: tuple(lines) for key, lines in entry["requires"].items()})
        elif "list" in entry:
            self.lists[entry["list"]] = tuple(entry["values"])
        else:
            raise ValueError("it holds an entry that means nothing here")

    def _write(self, entry: Mapping[str, Any]) -> None:
        assert self._file is not None, "the journal is not open"
        try:
            self._file.write(json.dumps(entry, sort_keys=True).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise _unwritable(self.folder, error) from error

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def read_question(folder: Path) -> dict[str, Any]:
    """The question that a journal is of. Raises UsageError where there is none."""
    try:
        with (folder / NAME).open("rb") as file:
            head = json.loads(file.readline())
        if head["format"] != FORMAT:
            raise ValueError(f"its format is {head['format']!r}, this tfenv reads format {FORMAT}")
        return cast("dict[str, Any]", dict(head["question"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(
            f"there is no bisection to go on with in {folder}: {error}",
            remedy="start one: tfenv bisect --good A --bad B -- COMMAND",
        ) from error


def forget(folder: Path) -> None:
    """Remove all that is known of a question.

    Raises:
        NotReadyError: somebody else works on it.
    """
    try:
        file = (folder / NAME).open("r+b")
    except FileNotFoundError:
        shutil.rmtree(folder, ignore_errors=True)
        return
    with file:
        claim(file, folder)
        shutil.rmtree(folder, ignore_errors=True)


def identity(question: Mapping[str, Any]) -> str:
    """The name of a question: the same one gets the same journal."""
    text = json.dumps(question, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def latest(root: Path) -> Path:
    """The folder of the question that was worked on last. Raises UsageError where there is none."""
    found = sorted(root.glob(f"*/{NAME}"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise UsageError(
            "there is no bisection to go on with",
            remedy="start one: tfenv bisect --good A --bad B -- COMMAND",
        )
    return found[-1].parent


def claim(file: IO[bytes], folder: Path) -> None:
    """Have a journal for oneself until it is closed. Raises NotReadyError: somebody else works on it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise NotReadyError(
            f"another tfenv works on this bisection ({folder})",
            remedy="wait for it, or end it; then type the command again",
        ) from error


def _unwritable(folder: Path, error: OSError) -> TfenvError:
    return NotReadyError(
        f"cannot write to {folder}: {error.strerror or error}",
        remedy="free space or change its permissions (TFENV_CACHE names another place), then type the "
        "command again: it goes on where it was",
    )
