"""Where the file of each pin lies today: in the store, or on one of the user's indexes.

An installer that is given names and hashes is not enough: uv takes a version from one index only, and fails
where another one has the wheel with the right hash. So the files themselves are named to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from tfenv.bisect.model import Pin, PinSet
from tfenv.bisect.venv import BuildRefused
from tfenv.errors import UsageError
from tfenv.index import IndexSettings
from tfenv.store import Store
from tfenv.uv import compile_pylock, url_of
from tfenv.wheel_tags import supported_tags
from tfenv.wheels import sources

if TYPE_CHECKING:
    from packaging.tags import Tag


@dataclass(frozen=True, kw_only=True)
class Located:
    """One file.

    Args:
        url: may hold a password: neither print nor keep it.
        sha256: in hex, empty where nobody tells. size: bytes, None where nobody tells.
    """

    name: str
    filename: str
    url: str = field(repr=False)
    sha256: str = ""
    size: int | None = None

    def line(self) -> str:
        """As a requirement of an installer."""
        return f"{self.name} @ {self.url}" + (f" --hash=sha256:{self.sha256}" if self.sha256 else "")


@dataclass
class Locator:
    """Finds files, each once.

    Args:
        python: ``3.11``; platform: what wheels have to run on.
        links: a folder for links to the store's files, which have no names of their own.
    """

    python: str
    platform: str
    index: IndexSettings
    uv: str
    env: Mapping[str, str]
    store: Store
    links: Path
    _known: dict[Pin, Located] = field(default_factory=dict)

    def locate(self, pins: PinSet) -> tuple[Located, ...]:
        """The files of all pins.

        Raises:
            BuildRefused: one of them is nowhere. NotReadyError: an index cannot be reached.
        """
        for pin in pins.pins:
            if pin not in self._known and (stored := self._stored(pin)):
                self._known[pin] = stored
        for settings in (self.index, *self.index.alone()):
            if left := [pin for pin in pins.pins if pin not in self._known]:
                self._look(left, settings)
        if gone := [pin.key for pin in pins.pins if pin not in self._known]:
            raise BuildRefused(f"no index has the files any more of {', '.join(gone)}")
        return tuple(self._known[pin] for pin in pins.pins)

    def note(self, pin: Pin, file: Located) -> None:
        """Somebody has found one."""
        self._known.setdefault(pin, file)

    def _stored(self, pin: Pin) -> Located | None:
        if not pin.file or len(pin.hashes) != 1 or not self.store.has(pin.hashes[0]):
            return None
        link = self.links / pin.hashes[0] / pin.file
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(self.store.path(pin.hashes[0]).absolute())
        size = link.stat().st_size
        return Located(name=pin.name, filename=pin.file, url=link.as_uri(), sha256=pin.hashes[0], size=size)

    def _look(self, pins: Sequence[Pin], settings: IndexSettings) -> None:
        try:
            documents = [self._ask(pins, settings)]
        except UsageError:  # uv stops at the first version that does not exist: ask for each
            documents = []
            for pin in pins:
                try:
                    documents.append(self._ask([pin], settings))
                except UsageError:
                    continue
        tags = supported_tags(self.python, self.platform)
        packages = {package["name"]: package for one in documents for package in one.get("packages", [])}
        for pin in pins:
            if pin.name in packages and (found := best_file(pin, packages[pin.name], tags)):
                self._known[pin] = found

    def _ask(self, pins: Sequence[Pin], settings: IndexSettings) -> dict[str, Any]:
        return compile_pylock(
            [pin.key for pin in pins],
            python=self.python,
            platform=self.platform,
            options=("--no-deps", *sources(pin.name for pin in pins if pin.source)),
            index=settings,
            uv=self.uv,
            env=self.env,
        )


def best_file(pin: Pin, package: Mapping[str, Any], tags: Mapping[Tag, int]) -> Located | None:
    """The file that an installer would take among those that the pin allows."""
    entries = [package["sdist"]] if pin.source and "sdist" in package else package.get("wheels", [])
    ranked = []
    for entry in entries:
        filename = unquote(url_of(entry).rsplit("/", 1)[-1])
        sha256 = entry.get("hashes", {}).get("sha256", "")
        rank = (0, 0) if pin.source else _rank(filename, tags)
        if rank is not None and (not pin.hashes or sha256 in pin.hashes):
            ranked.append((rank, filename, sha256, url_of(entry), entry.get("size")))
    if not ranked:
        return None
    _, filename, sha256, url, size = min(ranked, key=lambda item: item[:2])
    return Located(name=pin.name, filename=filename, url=url, sha256=sha256, size=size)


def _rank(filename: str, tags: Mapping[Tag, int]) -> tuple[int, int] | None:
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    try:
        _, _, build, of_wheel = parse_wheel_filename(filename)
    except InvalidWheelFilename:
        return None
    rank = min((tags[tag] for tag in of_wheel if tag in tags), default=None)
    # Of two builds the one with the higher number, as the wheel specification says.
    return None if rank is None else (rank, -build[0] if build else 0)


def lines(files: Iterable[Located]) -> str:
    """As a requirements file of an installer."""
    return "".join(f"{file.line()}\n" for file in files)
