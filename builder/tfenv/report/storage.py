"""Reports in folders: one for each image digest, suite and kind of host."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tfenv.errors import IntegrityError

from .ctrf import from_ctrf, to_ctrf
from .junit import to_junit
from .markdown import to_markdown
from .model import Host, Report, key

CTRF = "report.ctrf.json"
JUNIT = "report.junit.xml"
MARKDOWN = "report.md"
_ROOM = 1 << 20  # bytes: more than most reports have

WRITERS: dict[str, Callable[[Report], str]] = {
    MARKDOWN: to_markdown,
    JUNIT: to_junit,
    CTRF: lambda report: json.dumps(to_ctrf(report), indent=2, sort_keys=True, allow_nan=False) + "\n",
}


def require_room(parent: Path) -> None:
    """Prove that reports can be written there, before a run whose result they are to hold.

    Raises:
        OSError: they cannot.
    """
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=parent) as file:
            file.write(bytes(_ROOM))
            file.flush()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(parent)) from None  # not the name of that file


def write(report: Report, parent: Path, now: Callable[[], float] = time.time) -> Path:
    """Write all forms to ``parent/<key>/`` and return that folder.

    Args:
        now: Unix seconds.

    A former report of the same key is replaced: by all forms, or where one cannot be written by none. Who is
    killed in between leaves the new verdict, never the former one, and never two at once make a mixture.
    Beside one that passed or failed stand what could not be verified now, in ``<key>-unverified/``, and what
    was run before it, as by lines that are judged late, in ``<key>-earlier/``.
    """
    folder = _place(report, parent, now())
    folder.mkdir(parents=True, exist_ok=True)
    texts = {name: form(report) for name, form in WRITERS.items()}
    with _held(folder) as alone:
        if alone:
            _forget_unfinished(folder)
        aside: dict[str, Path] = {}
        try:
            for name, text in texts.items():
                aside[name] = _aside(folder / name, text)
            for name in (CTRF, *(name for name in aside if name != CTRF)):
                aside[name].replace(folder / name)
        finally:
            for temporary in aside.values():
                temporary.unlink(missing_ok=True)
    return folder


def _place(report: Report, parent: Path, now: float) -> Path:
    folder = parent / report.key
    try:
        former = read(folder)
    except IntegrityError:
        return folder
    if former.verdict == "unverified":
        return folder
    if report.verdict == "unverified":
        return parent / f"{report.key}-unverified"
    # One that is dated in the future tells of no order.
    late = report.started < former.started <= now * 1000
    return parent / f"{report.key}-earlier" if late else folder


@contextmanager
def _held(folder: Path) -> Iterator[bool]:
    """One at a time writes there; False on a network file system without locks: each file is still whole."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    held = False
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
            held = True
        yield held
    finally:
        os.close(handle)


def _forget_unfinished(folder: Path) -> None:
    """Remove what somebody left who was killed while writing."""
    for name in WRITERS:
        for path in folder.glob(f".{name}.*"):
            with contextlib.suppress(OSError):
                path.unlink()


def _aside(path: Path, text: str) -> Path:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(0o644)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def read(folder: Path) -> Report:
    """The report in ``folder``.

    Raises:
        IntegrityError: there is none, or it is not one of ours.
    """
    path = folder / CTRF
    try:
        return from_ctrf(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise IntegrityError(
            f"{path} is not a usable report: {error!r}", remedy="delete it and run `tfenv verify`"
        ) from None


def find(parent: Path, digest: str, suite_hash: str, host: Host) -> Report | None:
    """A former verdict of exactly this image, suite and host, None if there is no usable one."""
    try:
        report = read(parent / key(digest, suite_hash, host))
    except IntegrityError:
        return None
    same = (report.digest, report.suite_hash, report.host) == (digest, suite_hash, host)
    return report if same else None
