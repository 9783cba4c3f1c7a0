"""A YAML file as plain data, with the line and column of every key and value.

Data only: aliases, merge keys and custom tags are refused, so a small file cannot grow into a large
one. Scalars are not converted: ``3.10`` stays the text that was written, known to be a number.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import MatrixError

MAX_BYTES = 1_000_000
#: Keys and indices from the top; a last part ``[key]`` means the key itself, not its value.
Location = tuple[str | int, ...]
OF_KEY = "[key]"
Position = tuple[int, int]


@dataclass(frozen=True, order=True)
class Problem:
    """Something wrong at a line and column, both counted from 1."""

    line: int
    column: int
    message: str


@dataclass(frozen=True)
class Scalar:
    """A value that is not text: a number, true, false. ``text`` is what was written."""

    kind: str
    text: str


@dataclass
class Document:
    """Plain data and where each part of it stands in the file."""

    path: Path
    data: Any = None
    keys: dict[Location, Position] = field(default_factory=dict)
    values: dict[Location, Position] = field(default_factory=dict)

    def at(self, where: Location) -> Position:
        """Position of a value or key, or of the nearest thing around it that is in the file."""
        if where and where[-1] == OF_KEY and where[:-1] in self.keys:
            return self.keys[where[:-1]]
        while where and where not in self.values:
            where = where[:-1]
        return self.values.get(where, (1, 1))


def describe(value: Any) -> str:
    """A value of the file in words, short and on one line."""
    if isinstance(value, Scalar):
        shown = value.text if len(value.text) <= 40 else value.text[:37] + "..."
        return f'the {value.kind} {shown} (quote it to make it text: "{shown}")'
    if value is None:
        return "nothing"
    if isinstance(value, str):
        shown = value if len(value) <= 60 else value[:57] + "..."
        return json.dumps(shown)
    return "a mapping" if isinstance(value, dict) else "a list"


def failure(path: Path, problems: list[Problem], *, remedy: str) -> MatrixError:
    """One error that lists all problems of a file, in the order of its lines."""
    lines = [f"{path}:{p.line}:{p.column}: {p.message}" for p in sorted(set(problems))]
    return MatrixError("\n".join(lines), remedy=remedy)


def read(path: Path) -> Document:
    """Read a YAML file.

    Raises:
        MatrixError: the file is missing, unreadable, too large, not text, or not plain YAML.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.composer import Composer
    from ruamel.yaml.error import MarkedYAMLError, YAMLError
    from ruamel.yaml.events import AliasEvent

    text = _text(path)

    class NoAliases(Composer):
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.parser.check_event(AliasEvent):
                mark = self.parser.peek_event().start_mark
                problem = Problem(
                    mark.line + 1, mark.column + 1, "found an alias; expected the value written out"
                )
                raise failure(path, [problem], remedy="replace the alias (*) by what it stands for")
            return super().compose_node(parent, index)

    yaml = YAML(typ="safe", pure=True)
    yaml.Composer = NoAliases
    try:
        node = yaml.compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        what = ", ".join(str(part) for part in (error.context, error.problem) if part)
        raise failure(
            path,
            [Problem(line, column, f"not YAML: {_one_line(what)}")],
            remedy="correct the line; YAML is indented with spaces, never with tabs",
        ) from None
    except (YAMLError, RecursionError, ValueError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else _one_line(str(error))
        raise failure(
            path,
            [Problem(1, 1, f"not YAML: {what}")],
            remedy="write matrix.yaml as plain YAML text",
        ) from None
    document = Document(path)
    if node is None:
        return document
    problems: list[Problem] = []
    document.data = _plain(node, (), document, problems.append)
    if problems:
        raise failure(path, problems, remedy="write plain mappings, lists and text")
    return document


def _text(path: Path) -> str:
    hint = "name another file with $TFENV_MATRIX, or run tfenv in a folder that has a matrix.yaml"
    try:
        if not path.is_file():
            state = "is not a file" if path.exists() else "does not exist"
            raise MatrixError(f"{path} {state}", remedy=hint)
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise MatrixError(f"{path} cannot be read: {error.strerror}", remedy=hint) from None
    if len(raw) > MAX_BYTES:
        raise MatrixError(f"{path} has more than {MAX_BYTES} bytes; a matrix has a few thousand", remedy=hint)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        raise failure(
            path,
            [
                Problem(
                    before.count(b"\n") + 1,
                    error.start - before.rfind(b"\n"),
                    f"found the byte 0x{raw[error.start]:02x}; expected UTF-8 text",
                )
            ],
            remedy="save the file as UTF-8 text",
        ) from None
    if "\0" in text:
        before_nul = text[: text.index("\0")]
        raise failure(
            path,
            [
                Problem(
                    before_nul.count("\n") + 1,
                    len(before_nul) - before_nul.rfind("\n"),
                    "found a NUL byte; expected text",
                )
            ],
            remedy="matrix.yaml is a text file; is this the right one?",
        )
    return text


def _plain(node: Any, where: Location, document: Document, report: Callable[[Problem], None]) -> Any:
    """Turn ruamel's nodes into dicts, lists, text and ``Scalar``; note where each stands."""
    position = (node.start_mark.line + 1, node.start_mark.column + 1)
    document.values.setdefault(where, position)
    tag = str(node.tag).removeprefix("tag:yaml.org,2002:")
    if node.id == "mapping" and tag == "map":
        return _mapping(node, where, document, report)
    if node.id == "sequence" and tag == "seq":
        return [_plain(item, (*where, i), document, report) for i, item in enumerate(node.value)]
    if node.id == "scalar":
        if tag in ("str", "timestamp"):
            return str(node.value)
        if tag == "null":
            return None
        if tag in ("int", "float"):
            return Scalar("number", str(node.value))
        if tag == "bool":
            return Scalar("truth value", str(node.value))
    report(Problem(*position, f"found the tag {_one_line(tag)!r}; expected plain data"))
    return None


def _mapping(
    node: Any, where: Location, document: Document, report: Callable[[Problem], None]
) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        position = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
        if key_node.id != "scalar" or not str(key_node.tag).endswith(":str"):
            found = describe_key(key_node)
            report(Problem(*position, f"found {found} as a key; expected a word"))
            continue
        key = str(key_node.value)
        inner = (*where, key)
        if key in result:
            first = document.keys[inner][0]
            report(Problem(*position, f"found {json.dumps(key)} again; it stands in line {first} too"))
            continue
        document.keys[inner] = position
        if str(value_node.tag).endswith(":null") and not value_node.value:
            document.values[inner] = position  # an absent value is marked at whatever comes next
        result[key] = _plain(value_node, inner, document, report)
    return result


def describe_key(node: Any) -> str:
    """A key that is no text, in words."""
    if node.id != "scalar":
        return f"a {node.id}"
    return "a merge key (<<)" if str(node.tag).endswith(":merge") else json.dumps(str(node.value))


def _one_line(text: str) -> str:
    return " ".join(text.split())[:200]
