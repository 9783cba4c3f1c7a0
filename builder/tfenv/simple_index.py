"""The project pages of the user's own package indexes: which files there are, and which were yanked.

Both forms of the simple repository API are read, JSON (PEP 691) and HTML (PEP 503), also from a folder
of this machine (``file:``). Which indexes are asked is the user's own configuration of pip and uv.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from tfenv.errors import NotReadyError, TfenvError
from tfenv.index import IndexSettings, discover, redact

if TYPE_CHECKING:
    import requests

Run = Any

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
# What an index answers for a project that it does not have, or does not show to this user.
_ABSENT = (404, 410)
# Bytes of a page: the longest of the public index have some megabytes.
_MOST = 1 << 26
# How many times as long as a server may be silent, a page may take as a whole.
_PATIENCE = 20


@dataclass(frozen=True, kw_only=True)
class ProjectFile:
    """One file of a project, as its index tells.

    Args:
        url: absolute, without fragment; may hold a password where the index's own URL does.
        hashes: hex digests by algorithm; empty where the index tells none.
        size: bytes, None where the index does not tell.
        upload_time: RFC 3339, None where the index does not tell.
        yanked: why its author withdrew it (maybe an empty text), None where it is not withdrawn.
        requires_python: e.g. ``>=3.9``; empty for any.
    """

    filename: str
    url: str
    hashes: Mapping[str, str]
    size: int | None = None
    upload_time: str | None = None
    yanked: str | None = None
    requires_python: str = ""

    @property
    def sha256(self) -> str:
        """Its sha256 in hex; empty where the index does not tell."""
        return self.hashes.get("sha256", "")


@dataclass(frozen=True)
class SimpleIndex:
    """Some package indexes that are asked as one.

    Args:
        urls: their roots, the default one first.
        session: how they are reached; it may be used from several threads.
        timeout: seconds that a server may be silent.
    """

    urls: tuple[str, ...]
    session: requests.Session
    timeout: float = 30.0

    def hosts(self) -> tuple[str, ...]:
        """Whom it asks: host names, or folders of this machine."""
        return tuple(dict.fromkeys(host_of(url) for url in self.urls))


def open_index(env: Mapping[str, str] | None = None, run: Run = subprocess.run) -> SimpleIndex:
    """The indexes of this user. Raises NotReadyError without uv, TfenvError where uv cannot name them."""
    from tfenv.uv import uv_binary

    env = os.environ if env is None else env
    settings = discover(env)
    urls = index_urls(settings, uv=uv_binary(env), env=env, run=run)
    return SimpleIndex(urls, settings.requests_session(), settings.timeout)


def index_urls(
    settings: IndexSettings, *, uv: str, env: Mapping[str, str], run: Run = subprocess.run
) -> tuple[str, ...]:
    """The roots of the indexes that uv would ask, the default one first; empty where it may ask none.

    uv is asked because it alone knows its own files (uv.toml) and its own default.
    """
    if settings.no_index:
        return ()
    command = [uv, "pip", "compile", "-", "--no-deps", "--emit-index-url", "--no-header", "--quiet"]
    # uv wants a Python even where there is nothing to resolve; this one is there.
    command += ["--python", sys.executable]
    try:
        done = run(
            command,
            input="",
            capture_output=True,
            text=True,
            check=False,
            cwd="/",  # no project's own settings
            env={**settings.environment(env), "NO_COLOR": "1"},
        )
    except OSError as error:
        raise NotReadyError(
            f"cannot run {uv}: {error.strerror or error}",
            remedy="install tfenv with its dependencies (it brings uv), or set TFENV_UV",
        ) from error
    found = re.findall(r"^--(extra-)?index-url (\S+)$", done.stdout, re.MULTILINE)
    if done.returncode or not found:
        raise TfenvError(
            f"uv does not say which package index it uses: {redact(done.stderr.strip())}",
            remedy="look at pip's and uv's settings: pip config list",
        )
    default_first = sorted(found, key=lambda pair: bool(pair[0]))
    return tuple(dict.fromkeys(url for _, url in default_first))


def project_files(index: SimpleIndex, name: str) -> tuple[ProjectFile, ...]:
    """All files of a project on all of these indexes, each file once; empty where none has the project.

    Raises:
        NotReadyError: an index does not answer, so what is there is not known.
    """
    found: dict[tuple[str, str], ProjectFile] = {}
    for root in index.urls:
        page = f"{root.rstrip('/')}/{normalized(name)}/"
        for file in _read(index, page):
            found.setdefault((file.filename, file.sha256), file)
    return tuple(found.values())


def normalized(name: str) -> str:
    """A project's name as indexes write it: ``ml_dtypes`` -> ``ml-dtypes``."""
    return re.sub(r"[-_.]+", "-", name).lower()


def host_of(url: str) -> str:
    """Whom a URL asks, without user and password: a host, or the folder of a ``file:`` URL."""
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2] or unquote(parts.path)


def parse_page(text: str, content_type: str, url: str) -> tuple[ProjectFile, ...]:
    """A project page in either form.

    Args:
        url: of the page; links are relative to it.

    Raises:
        ValueError: it is neither.
    """
    if "json" in content_type:
        return tuple(_from_json(json.loads(text), url))
    links = _Links()
    links.feed(text)
    base = urljoin(url, links.base) if links.base else url
    found = (_from_link(attributes, base) for attributes in links.found)
    return tuple(file for file in found if _may_link(url, file.url))


def _read(index: SimpleIndex, page: str) -> tuple[ProjectFile, ...]:
    if urlsplit(page).scheme == "file":
        file = Path(unquote(urlsplit(page).path), "index.html")
        return parse_page(file.read_text("utf-8"), "text/html", page) if file.is_file() else ()
    import requests

    try:
        headers = {"Accept": ACCEPT}
        with index.session.get(page, headers=headers, timeout=index.timeout, stream=True) as answer:
            if answer.status_code in _ABSENT:
                return ()
            answer.raise_for_status()
            body = _body(answer, index.timeout)
    except requests.RequestException as error:
        raise NotReadyError(
            f"the package index {host_of(page)} cannot be read: {redact(str(error))}",
            remedy="check the network, proxy and CA settings (pip's and uv's own are used)",
        ) from error
    try:
        if body is None:
            raise ValueError("it does not end")
        text = body.decode(answer.encoding or "utf-8", "replace")
        return parse_page(text, answer.headers.get("Content-Type", ""), answer.url)
    except (ValueError, KeyError, TypeError, AttributeError, LookupError, RecursionError) as error:
        raise NotReadyError(
            f"the package index {host_of(page)} answers no listing of files: {redact(str(error))}",
            remedy="it has to speak the simple API of Python's package indexes, JSON or HTML",
        ) from error


def _body(answer: requests.Response, timeout: float) -> bytes | None:
    """The page; None where there is no end of it."""
    body, until = bytearray(), time.monotonic() + _PATIENCE * timeout
    for chunk in answer.iter_content(1 << 16):
        body += chunk
        if len(body) > _MOST or time.monotonic() > until:
            return None
    return bytes(body)


def _from_json(page: Any, url: str) -> Iterable[ProjectFile]:
    for file in page["files"]:
        yanked, size = file.get("yanked"), file.get("size")
        link = urljoin(url, _text(file["url"]))
        if not _may_link(url, link):
            continue
        yield ProjectFile(
            filename=_text(file["filename"]),
            url=link,
            hashes={_text(name): _text(value) for name, value in file["hashes"].items()},
            size=size if type(size) is int and size >= 0 else None,
            upload_time=_text(file.get("upload-time") or "") or None,
            yanked=None if yanked in (False, None) else "" if yanked is True else str(yanked),
            requires_python=_text(file.get("requires-python") or ""),
        )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:40]} stands where a text belongs")
    return value


def _may_link(page: str, link: str) -> bool:
    """Whether a page may name such a file: a server's page none of this machine."""
    return urlsplit(link).scheme in ("http", "https") or urlsplit(page).scheme == "file"


def _from_link(attributes: Mapping[str, str | None], base: str) -> ProjectFile:
    url, fragment = urldefrag(urljoin(base, attributes.get("href") or ""))
    algorithm, _, value = fragment.partition("=")
    yanked = (attributes["data-yanked"] or "") if "data-yanked" in attributes else None
    return ProjectFile(
        filename=unquote(urlsplit(url).path.rsplit("/", 1)[-1]),
        url=url,
        hashes={algorithm: value} if value else {},
        yanked=yanked,
        requires_python=attributes.get("data-requires-python") or "",
    )


class _Links(HTMLParser):
    """The links of an HTML page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, str | None]] = []
        self.base = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called by the parser."""
        attributes = dict(attrs)
        if tag == "base":
            self.base = self.base or attributes.get("href") or ""
        elif tag == "a" and attributes.get("href"):
            self.found.append(attributes)
