"""What the user's package indexes have: the wheels of a project, with size, hash and time of upload."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tfenv.errors import TfenvError
from tfenv.simple_index import ProjectFile, SimpleIndex, project_files
from tfenv.versions import order

_PLATFORM = re.compile(r"manylinux\w*_x86_64")
_CPYTHON = re.compile(r"cp(\d)(\d+)")


@dataclass(frozen=True, kw_only=True)
class IndexFile:
    """One GPU-capable kind of wheel that an index offers: manylinux, x86_64, CPython.

    Args:
        python: ``3.11``; size: bytes, None where the index does not tell; uploaded: RFC 3339 time, or "".
        yanked: the reason, or "" (a yank without a reason is ``yanked``).
    """

    filename: str
    version: str
    python: str
    url: str
    size: int | None
    sha256: str
    uploaded: str
    yanked: str


def wheels_of(project: str, index: SimpleIndex, since: str) -> tuple[IndexFile, ...]:
    """The project's manylinux x86_64 CPython wheels from a version on, oldest release first.

    Args:
        since: the lowest version, e.g. ``2.4``; its own candidates do not count.

    Raises:
        NotReadyError: an index cannot be reached, or answers something else than a listing.
        TfenvError: none of them has the project.
    """
    found: dict[str, IndexFile] = {}
    for file in project_files(index, project):
        wheel = _wheel(file)
        if wheel and order(wheel.version) >= order(since):
            found.setdefault(wheel.filename, wheel)
    if not found:
        raise TfenvError(
            f"no index has wheels of {project} {since} or newer for Linux x86_64",
            remedy="see which indexes are asked: pip config list; uv's own are in uv.toml and UV_*",
        )
    return tuple(sorted(found.values(), key=lambda w: (order(w.version), order(w.python), w.filename)))


def _wheel(file: ProjectFile) -> IndexFile | None:
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    try:
        _, version, _, tags = parse_wheel_filename(file.filename)
    except InvalidWheelFilename:
        return None
    python = next((m for tag in sorted(tags, key=str) if (m := _CPYTHON.fullmatch(tag.interpreter))), None)
    if python is None or not any(_PLATFORM.fullmatch(tag.platform) for tag in tags):
        return None
    return IndexFile(
        filename=file.filename,
        version=str(version),
        python=f"{python[1]}.{python[2]}",
        url=file.url,
        size=file.size,
        sha256=file.sha256,
        uploaded=re.sub(r"\.\d+(?=Z|$)", "", file.upload_time or ""),
        yanked="" if file.yanked is None else file.yanked or "yanked",
    )
