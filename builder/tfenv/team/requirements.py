"""A requirements file -> requirements that matrix.yaml can hold; what else it says is refused, and why."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from tfenv.errors import UsageError
from tfenv.model import Cell
from tfenv.patterns import REQUIREMENT

_MAX_BYTES = 1_000_000
_MAX_LINE = 2000
_INDEX = "an option of the index, which is for the pip configuration of whoever locks to say"
#: What a line may begin with and not be, and what to do instead.
_REFUSED: tuple[tuple[str, str, str], ...] = (
    (r"-e\b|--editable\b", "an editable installation is of no fixed content", "build a wheel of it"),
    (r"-c\b|--constraint\b", "a file of constraints", "write the versions beside the requirements"),
    (r"-i\b|--index-url\b|--extra-index-url\b|-f\b|--find-links\b|--no-index\b", _INDEX, "remove the line"),
    (r"--trusted-host\b|--proxy\b|--cert\b|--client-cert\b", _INDEX, "remove the line"),
    (r"--pre\b", "an option that admits pre-releases of all packages", "name the pre-release: NAME==1.0rc1"),
    (
        r"--require-hashes\b",
        "an option of hashes, which are for the lock: it has one for every wheel",
        "remove the line and all --hash",
    ),
    (r"-", "an option", "remove the line; only -r FILE is known"),
    (r"(?:git|hg|svn|bzr)\+", "a version control URL, of no fixed content", "build a wheel of it"),
    (
        r"[A-Za-z][A-Za-z0-9+.-]*://|file:",
        "a URL",
        "name the package; put its wheel into a folder or index that PIP_FIND_LINKS or pip.conf names",
    ),
    (
        r"[./~\\]|[A-Za-z]:\\|\S+\.(?:whl|tar\.gz|zip)$",
        "a path",
        "name the package; put its wheel into a folder that PIP_FIND_LINKS names",
    ),
)


@dataclass(frozen=True)
class Line:
    """One logical line of a file, with where it stands."""

    where: str
    text: str


def read_requirements(path: Path, cell: Cell) -> tuple[str, ...]:
    """The requirements of a file and of those that it includes with ``-r``, for that cell's Python.

    Raises:
        UsageError: names each line that cannot be taken, why, and what to do instead.
    """
    found: list[str] = []
    problems: list[str] = []
    for line in _lines(path, ()):
        try:
            if (text := requirement(line.text, cell)) and text not in found:
                found.append(text)
        except ValueError as error:
            problems.append(f"{line.where}: {error}")
    if problems:
        raise UsageError("\n".join(problems), remedy="correct these lines; nothing was changed")
    if not found:
        raise UsageError(
            f"{path} asks for nothing on Python {cell.python}", remedy="write a package's name into it"
        )
    return tuple(found)


def requirement(text: str, cell: Cell) -> str:
    """One line as matrix.yaml takes it: no spaces, no marker; empty where it does not hold for the cell.

    Raises:
        ValueError: why it cannot be taken, and what to do instead.
    """
    shown = text if len(text) <= 80 else f"{text[:77]}..."
    for pattern, what, instead in _REFUSED:
        if re.match(pattern, text):
            raise ValueError(f"{shown!r} is {what}; {instead}")
    if re.search(r"\s--hash\b", text):
        raise ValueError(f"{shown!r} brings hashes; remove them: `tfenv lock` pins every wheel by its hash")
    try:
        wanted = Requirement(text)
    except InvalidRequirement as error:
        raise ValueError(
            f"{shown!r} is no requirement: {str(error).splitlines()[0]}; "
            "write it as NAME, NAME==1.2 or NAME>=1,<2"
        ) from error
    if wanted.url:
        raise ValueError(
            f"{shown!r} is fetched from a URL; put its wheel into a folder that PIP_FIND_LINKS names, "
            f"and write: {wanted.name}"
        )
    if wanted.marker is not None and not holds(wanted.marker, cell):
        return ""
    extras = (
        f"[{','.join(sorted(canonicalize_name(extra) for extra in wanted.extras))}]" if wanted.extras else ""
    )
    clauses = ",".join(sorted(str(clause) for clause in wanted.specifier))
    made = f"{wanted.name}{extras}{clauses}"
    if not re.fullmatch(REQUIREMENT, made):
        raise ValueError(
            f"{shown!r} is more than matrix.yaml takes; write it as NAME, NAME==1.2 or NAME>=1,<2"
        )
    return made


def holds(marker: Marker, cell: Cell) -> bool:
    """Whether a marker is true in the cell's image."""
    environment = {
        "python_version": cell.python,
        "python_full_version": f"{cell.python}.0",
        "implementation_name": "cpython",
        "implementation_version": f"{cell.python}.0",
        "platform_python_implementation": "CPython",
        "os_name": "posix",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": "x86_64",
        "extra": "",
    }
    return marker.evaluate(environment)


def _lines(path: Path, above: tuple[Path, ...]) -> Iterator[Line]:
    """The logical lines of a file: continued ones joined, comments gone, included files in place."""
    own = Path(os.path.realpath(path))  # unlike resolve(), also of a link that leads round
    if own in above:
        raise UsageError(f"{path} includes itself", remedy="remove the -r line that closes the circle")
    for number, text in _logical(_text(path)):
        included = re.fullmatch(r"(?:-r|--requirement)[\s=]*(\S.*)", text)
        if included:
            yield from _lines(path.parent / included[1].strip(), (*above, own))
        else:
            yield Line(f"{path}:{number}", text)


def _logical(text: str) -> Iterator[tuple[int, str]]:
    pending, start = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        start = start if pending else number
        joined = pending + raw
        if joined.endswith("\\"):
            pending = joined[:-1] + " "
            continue
        pending = ""
        bare = re.sub(r"(?:^|\s+)#.*$", "", joined).strip()
        if len(bare) > _MAX_LINE:
            bare = f"-{bare[:100]}"  # refused, and never given to a parser
        if bare:
            yield start, bare
    if pending.strip():
        yield start, pending.strip()


def _bytes(path: Path) -> bytes:
    with path.open("rb") as file:  # a device has no size, and need not end
        return file.read(_MAX_BYTES + 1)


def _text(path: Path, read: Callable[[Path], bytes] = _bytes) -> str:
    try:
        data = read(path)
        if len(data) > _MAX_BYTES:
            raise UsageError(f"{path} is larger than {_MAX_BYTES} bytes", remedy="name a requirements file")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror or error}", remedy="name a requirements file"
        ) from error
    except ValueError as error:
        raise UsageError(f"{path} is no text: {error}", remedy="save it as UTF-8") from error
