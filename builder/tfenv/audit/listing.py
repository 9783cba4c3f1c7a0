"""What the user's package indexes have: the wheels of a project, with size, hash and time of upload."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urljoin, urlsplit

from tfenv.errors import NotReadyError, TfenvError
from tfenv.index import IndexSettings, redact
from tfenv.versions import order

if TYPE_CHECKING:
    import requests

_ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.2"
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


def index_urls(settings: IndexSettings, ask_uv: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
    """The simple indexes that pip and uv would ask, the default one first.

    Args:
        ask_uv: the indexes that uv itself has, for when the user names none: the default of both tools.
    """
    found: list[str] = []
    for alone in settings.alone():
        url = alone.index_url
        found += [re.sub(r"^[\w.-]+=", "", url)] if url else ask_uv()
    return tuple(dict.fromkeys(url.rstrip("/") for url in found))


def uv_indexes(stdout: str) -> tuple[str, ...]:
    """The indexes in what ``uv pip compile --emit-index-url`` prints."""
    return tuple(re.findall(r"^--(?:extra-)?index-url[ =](\S+)", stdout, re.MULTILINE))


def wheels_of(
    project: str, indexes: tuple[str, ...], session: requests.Session, since: str
) -> tuple[IndexFile, ...]:
    """The project's manylinux x86_64 CPython wheels from a version on, oldest release first.

    Args:
        since: the lowest version, e.g. ``2.4``; its own candidates do not count.

    Raises:
        NotReadyError: an index cannot be reached. TfenvError: it answers something else than a listing, or
            none of them has the project.
    """
    found: dict[str, IndexFile] = {}
    for index in indexes:
        for entry in _entries(f"{index}/{project}/", session):
            wheel = _wheel(entry)
            if wheel and order(wheel.version) >= order(since) and wheel.filename not in found:
                found[wheel.filename] = wheel
    if not found:
        raise TfenvError(
            f"no index has wheels of {project} {since} or newer for Linux x86_64",
            remedy="see which indexes are asked: pip config list; uv's own are in uv.toml and UV_*",
        )
    return tuple(sorted(found.values(), key=lambda w: (order(w.version), order(w.python), w.filename)))


def _entries(url: str, session: requests.Session) -> list[Mapping[str, Any]]:
    if urlsplit(url).scheme == "file":
        page = Path(unquote(urlsplit(url).path), "index.html")
        return _html(page.read_text("utf-8"), url) if page.is_file() else []
    import requests

    try:
        answer = session.get(url, headers={"Accept": _ACCEPT}, timeout=60)
        if answer.status_code == 404:
            return []
        answer.raise_for_status()
        kind = answer.headers.get("Content-Type", "")
        if "json" not in kind:
            return _html(answer.text, answer.url)
        files = answer.json()["files"]
    except requests.exceptions.JSONDecodeError as error:
        raise _no_listing(url) from error
    except requests.RequestException as error:
        raise NotReadyError(
            redact(f"the package index cannot be read: {error}"),
            remedy="check the network, proxy and CA settings (pip's and uv's own are used)",
        ) from error
    except (KeyError, TypeError, ValueError) as error:
        raise _no_listing(url) from error
    if not isinstance(files, list):
        raise _no_listing(url)
    return [{**file, "url": urljoin(answer.url, str(file.get("url")))} for file in files]


def _no_listing(url: str) -> TfenvError:
    return TfenvError(
        f"the package index answers no listing of files: {redact(url)}",
        remedy="it has to speak the simple API of Python's package indexes, JSON or HTML",
    )


def _wheel(entry: Mapping[str, Any]) -> IndexFile | None:
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    filename = str(entry.get("filename", ""))
    try:
        _, version, _, tags = parse_wheel_filename(filename)
    except InvalidWheelFilename:
        return None
    python = next((m for tag in sorted(tags, key=str) if (m := _CPYTHON.fullmatch(tag.interpreter))), None)
    if python is None or not any(_PLATFORM.fullmatch(tag.platform) for tag in tags):
        return None
    yanked = entry.get("yanked") or ""
    size = entry.get("size")
    return IndexFile(
        filename=filename,
        version=str(version),
        python=f"{python[1]}.{python[2]}",
        url=str(entry["url"]),
        size=size if isinstance(size, int) else None,
        sha256=str((entry.get("hashes") or {}).get("sha256", "")),
        uploaded=_seconds(str(entry.get("upload-time") or "")),
        yanked=yanked if isinstance(yanked, str) else "yanked",
    )


def _seconds(time: str) -> str:
    return re.sub(r"\.\d+(?=Z|$)", "", time)


class _Links(HTMLParser):
    def __init__(self, base: str) -> None:
        super().__init__()
        self.base = base
        self.found: list[Mapping[str, Any]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag != "a" or not given.get("href"):
            return
        url = urljoin(self.base, str(given["href"]))
        parts = urlsplit(url)
        kind, _, digest = parts.fragment.partition("=")
        yanked = (given["data-yanked"] or True) if "data-yanked" in given else ""
        self.found.append(
            {
                "filename": unquote(parts.path.rsplit("/", 1)[-1]),
                "url": url.partition("#")[0],
                "hashes": {kind: digest},
                "yanked": yanked,
            }
        )


def _html(text: str, base: str) -> list[Mapping[str, Any]]:
    links = _Links(base)
    links.feed(text)
    return links.found
