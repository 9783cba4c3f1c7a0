"""Reports in folders: one for each image digest, suite and kind of host."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from tfenv.errors import IntegrityError

from .ctrf import from_ctrf, to_ctrf
from .junit import to_junit
from .markdown import to_markdown
from .model import Host, Report, key

CTRF = "report.ctrf.json"
JUNIT = "report.junit.xml"
MARKDOWN = "report.md"

WRITERS: dict[str, Callable[[Report], str]] = {
    MARKDOWN: to_markdown,
    JUNIT: to_junit,
    # Last: it is what `read` looks for.
    CTRF: lambda report: json.dumps(to_ctrf(report), indent=2, sort_keys=True) + "\n",
}


def write(report: Report, parent: Path) -> Path:
    """Write all forms to ``parent/<key>/`` and return that folder.

    Each file appears whole or not at all. A former report of the same key is replaced.
    """
    folder = parent / report.key
    folder.mkdir(parents=True, exist_ok=True)
    for name, form in WRITERS.items():
        _write(folder / name, form(report))
    return folder


def _write(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


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
