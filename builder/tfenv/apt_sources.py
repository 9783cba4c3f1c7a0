"""What the host's apt sources say: archives by URI, and the keys that sign them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

ReadFile = Callable[[str], "str | None"]
ListDir = Callable[[str], "list[str]"]


@dataclass(frozen=True)
class Source:
    """An archive with binary packages of component ``main``; ``signed_by`` is a file of keys."""

    uri: str
    signed_by: str | None


def sources(read_file: ReadFile | None = None, list_dir: ListDir | None = None) -> Iterator[Source]:
    """The enabled ones, in apt's order; a list of mirrors counts as its members.

    Args:
        read_file: gives a file's text, or None where it is not there.
        list_dir: names in a folder, sorted.
    """
    read = read_file or read_text
    for source in _entries(read, list_dir or _list_dir):
        for uri in _expand(source.uri, read):
            yield Source(uri=uri, signed_by=source.signed_by)


def _entries(read: ReadFile, list_dir: ListDir) -> Iterator[Source]:
    folder = "/etc/apt/sources.list.d"
    files = ["/etc/apt/sources.list"]
    files += [f"{folder}/{name}" for name in list_dir(folder)]
    for file in files:
        text = read(file) or ""
        if file.endswith(".sources"):
            yield from _deb822_sources(text)
        elif file.endswith(".list"):
            yield from _one_line_sources(text)


def _one_line_sources(text: str) -> Iterator[Source]:
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+\S+\s+([^#]*)", line)
        # Others than Debian offer packages for it below .../debian, but none of them calls them main.
        if match and "main" in match[3].split():
            signed = re.search(r"signed-by=(\S+)", match[1] or "")
            yield Source(uri=match[2], signed_by=_file(signed[1] if signed else ""))


def _deb822_sources(text: str) -> Iterator[Source]:
    without_comments = "\n".join(ln for ln in text.splitlines() if not ln.startswith("#"))
    for block in re.split(r"\n[ \t]*\n", without_comments):
        fields: dict[str, str] = {}
        key = ""
        for line in block.splitlines():
            if line[:1] in " \t":
                fields[key] = fields.get(key, "") + " " + line.strip()
            else:
                key, _, value = line.partition(":")
                key = key.strip().lower()
                fields[key] = value.strip()
        if fields.get("enabled", "yes").lower() in ("no", "false", "0"):
            continue
        if "deb" in fields.get("types", "").split() and "main" in fields.get("components", "").split():
            for uri in fields.get("uris", "").split():
                yield Source(uri=uri, signed_by=_file(fields.get("signed-by", "")))


def _file(signed_by: str) -> str | None:
    # Signed-By may also hold a fingerprint or a whole key.
    return signed_by if re.fullmatch(r"/\S+", signed_by) else None


def _expand(uri: str, read: ReadFile) -> Iterator[str]:
    """The mirrors behind ``mirror+file:`` (cloud images use it), or the URI itself."""
    if uri.startswith(("http://", "https://", "file:/")):
        yield uri
    elif uri.startswith("mirror+file:"):
        for line in (read(urlsplit(uri).path) or "").splitlines():
            if line.startswith(("http://", "https://")):
                yield line.split()[0]


def read_text(path: str) -> str | None:
    """The file's text, None where it cannot be read."""
    try:
        return Path(path).read_text("utf-8")
    except (OSError, ValueError):
        return None


def _list_dir(path: str) -> list[str]:
    folder = Path(path)
    return sorted(f.name for f in folder.iterdir()) if folder.is_dir() else []
