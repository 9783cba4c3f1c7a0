"""What was seen of a host, as text: written by ``--record``, read by ``--replay``, judged by all the rest."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any

FORMAT = 1
RECORDING_MOST = 8 << 20  # characters or bytes; a recording of eight GPUs has some hundred thousand
_KIND = "tfenv-doctor"


class NotARecordingError(ValueError):
    """A file that was not written by ``tfenv doctor --record``; the message says what is wrong with it."""


@dataclass(frozen=True)
class Ran:
    """How a command ended.

    Args:
        status: its exit status; 127 for a program that is not there, 124 for one that did not end in time.
        skipped: why it was not run at all; empty where it was.
    """

    status: int = 127
    out: str = ""
    err: str = ""
    skipped: str = ""

    @property
    def there(self) -> bool:
        """Whether the program exists, as far as that is known."""
        return self.status != 127 and not self.skipped

    @property
    def ok(self) -> bool:
        """Whether it ran and succeeded."""
        return self.status == 0 and not self.skipped

    @property
    def late(self) -> bool:
        """Whether it did not end in time."""
        return self.status == 124 and not self.skipped

    @property
    def said(self) -> str:
        """All that it printed."""
        return f"{self.out}\n{self.err}".strip()


@dataclass(frozen=True)
class Node:
    """A device node: octal mode, owner and group by number, and whether this user may read and write it."""

    mode: str
    owner: int
    group: int
    major: int
    minor: int
    usable: bool


@dataclass(frozen=True)
class Space:
    """A file system: bytes free for this user and in all."""

    free: int
    size: int


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All that was seen.

    Args:
        recorded: the day, ``2026-11-30``.
        system: kernel release, machine, Python.
        user: ``uid``, ``gid``, and the names of its groups.
        env: the variables that matter; one that may hold a secret only tells that it is set.
        files: text by path; None for one that may not be read; one that is not there is missing.
        folders: names by path. links: where a symbolic link ends, by path.
        nodes: device nodes by path. spaces: file systems by what they are for.
        commands: by command line.
        network: by what was asked, what came of it; empty where nothing was asked.
    """

    recorded: str = ""
    system: dict[str, str] = field(default_factory=dict)
    user: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    files: dict[str, str | None] = field(default_factory=dict)
    folders: dict[str, list[str]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    spaces: dict[str, Space] = field(default_factory=dict)
    commands: dict[str, Ran] = field(default_factory=dict)
    network: dict[str, str] = field(default_factory=dict)

    def file(self, path: str) -> str:
        """A file's text; empty where it is not there or may not be read."""
        return self.files.get(path) or ""

    def command(self, line: str) -> Ran:
        """How a command ended; as one that is not there where it was never tried."""
        return self.commands.get(line, Ran())


def dump(evidence: Evidence) -> str:
    """The evidence as JSON text."""
    return json.dumps({"kind": _KIND, "format": FORMAT, **asdict(evidence)}, indent=1, sort_keys=True) + "\n"


def load(text: str) -> Evidence:
    """The evidence in a recording.

    Raises:
        NotARecordingError: it is none, of another format, or not what it should be.
    """
    if len(text) > RECORDING_MOST:
        raise NotARecordingError(f"it has more than {RECORDING_MOST >> 20} million characters")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise NotARecordingError("it is not JSON") from None
    if not isinstance(data, dict) or data.pop("kind", "") != _KIND:
        raise NotARecordingError("it was not written by tfenv doctor")
    if (version := data.pop("format", None)) != FORMAT:
        raise NotARecordingError(f"it has format {str(version)[:20]}, and {FORMAT} is read here")
    return of_plain(data)


def of_plain(data: dict[str, Any]) -> Evidence:
    """The evidence from parsed JSON.

    Raises:
        NotARecordingError: a key is unknown, or a value is not of its kind.
    """
    known = {each.name for each in fields(Evidence)}
    if unknown := data.keys() - known:
        raise NotARecordingError(f"unknown key {sorted(map(str, unknown))[0][:40]!r}")
    given: dict[str, Any] = {key: _checked(key, value) for key, value in data.items()}
    for key, kind in (("nodes", Node), ("spaces", Space), ("commands", Ran)):
        if key in given:
            given[key] = {name: _made(kind, name, value) for name, value in given[key].items()}
    return Evidence(**given)


def _checked(key: str, value: Any) -> Any:
    if key == "recorded":
        good = isinstance(value, str)
    elif not isinstance(value, dict):
        good = False
    elif key in ("system", "env", "links", "network"):
        good = all(isinstance(one, str) for one in value.values())
    elif key == "files":
        good = all(one is None or isinstance(one, str) for one in value.values())
    elif key == "folders":
        good = all(
            isinstance(one, list) and all(isinstance(name, str) for name in one) for one in value.values()
        )
    elif key == "user":
        groups = value.get("groups", [])
        good = isinstance(groups, list) and all(isinstance(name, str) for name in groups)
        good = good and all(isinstance(value.get(name, 0), int) for name in ("uid", "gid"))
    else:
        good = True
    if not good:
        raise NotARecordingError(f"'{key}' is not what it should be")
    return value


def _made(kind: type[Any], name: str, value: Any) -> Any:
    types = {"str": str, "int": int, "bool": bool}
    wanted = {each.name: types[str(each.type)] for each in fields(kind)}
    right = isinstance(value, dict) and all(
        key in wanted and type(one) is wanted[key] for key, one in value.items()
    )
    try:
        if right:
            return kind(**value)
    except TypeError:
        pass
    raise NotARecordingError(f"'{name[:60]}' is not what it should be")
