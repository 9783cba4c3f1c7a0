"""Dockerfile -> stages, instructions and the commands in them; as much of its language as linting needs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from tfenv import nvidia_images
from tfenv.nvidia_images import Image

_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::?[-+]([^}]*))?\}|(\w+))")


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """One instruction: its line (from 1), its word in capitals, what follows, and the lines of heredocs."""

    line: int
    word: str
    text: str
    body: str = ""

    @cached_property  # every rule asks for them
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """The shell commands of a RUN as words; what a shell alone could tell is left as it stands."""
        if self.word != "RUN":
            return ()
        text = re.sub(r"^(--\w[\w-]*(=\S+)?\s+)+", "", self.text)
        shell = self.body if _HEREDOC.search(text) and self.body else text
        return tuple(words for part in _parts(shell) if (words := _words(part)))

    @property
    def mounts(self) -> tuple[dict[str, str], ...]:
        """The ``--mount`` options."""
        found = re.findall(r"--mount=(\S+)", self.text) if self.word == "RUN" else []
        return tuple(dict(f"{part}=".split("=")[:2] for part in one.split(",")) for one in found)


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A stage: the image that it starts from in the end, and all instructions, those of stages below too.

    Args:
        line: of FROM, 0 if there is none; alias: its name; own: index of its first own instruction.
    """

    line: int
    image: Image | None
    platform: str = ""
    alias: str = ""
    instructions: tuple[Instruction, ...] = ()
    own: int = 0

    @property
    def env(self) -> dict[str, str]:
        """The variables that ENV sets."""
        found: dict[str, str] = {}
        for instruction in self.instructions:
            if instruction.word == "ENV":
                found.update(_pairs(instruction.text))
        return found


def parse(text: str) -> tuple[Stage, ...]:
    """The stages of a Dockerfile; one without FROM, as in a fragment, counts as a stage of no known image."""
    stages: list[Stage] = []
    arguments: dict[str, str] = {}
    current: Stage | None = None
    for instruction in _instructions(text):
        if instruction.word == "FROM":
            current = _from(instruction, arguments, stages)
            stages.append(current)
        elif current is None and instruction.word == "ARG":
            arguments.update(_pairs(instruction.text))
        else:
            if current is None:
                current = Stage(line=0, image=None)
                stages.append(current)
            current = Stage(
                line=current.line,
                image=current.image,
                platform=current.platform,
                alias=current.alias,
                instructions=(*current.instructions, instruction),
                own=current.own,
            )
            stages[-1] = current
    return tuple(stages)


def _from(instruction: Instruction, arguments: Mapping[str, str], before: list[Stage]) -> Stage:
    words = instruction.text.split()
    platform = next((w.partition("=")[2] for w in words if w.startswith("--platform=")), "")
    words = [word for word in words if not word.startswith("--")]
    name = _substituted(words[0], arguments) if words else ""
    alias = words[2] if len(words) > 2 and words[1].lower() == "as" else ""
    below = next((stage for stage in before if stage.alias and stage.alias.lower() == name.lower()), None)
    image = below.image if below else nvidia_images.parse(name) if name and "$" not in name else None
    instructions = below.instructions if below else ()
    return Stage(
        line=instruction.line,
        image=image,
        platform="" if "$" in platform else platform,
        alias=alias,
        instructions=instructions,
        own=len(instructions),
    )


def _instructions(text: str) -> Iterator[Instruction]:
    lines = iter(enumerate(text.splitlines(), start=1))
    for number, line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        whole = line.strip()
        while whole.endswith("\\"):
            following = next(lines, None)
            if following is None:
                break
            if not following[1].lstrip().startswith("#"):  # a comment does not end what goes on
                whole = whole[:-1].rstrip() + " " + following[1].strip()
        whole = whole.rstrip("\\").strip()
        body: list[str] = []
        if match := _HEREDOC.search(whole):
            for _, inner in lines:
                if inner.strip() == match[2]:
                    break
                body.append(inner)
        word, _, rest = whole.partition(" ")
        yield Instruction(line=number, word=word.upper(), text=rest.strip(), body="\n".join(body))


def _parts(shell: str) -> list[str]:
    """Split at the operators between commands, outside quotes."""
    joined = re.sub(r"\\\n", " ", shell)
    parts, current, quote = [], "", ""
    for character in joined:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "&;|\n":
            parts.append(current)
            current = ""
            continue
        current += character
    return [*parts, current]


def _words(part: str) -> tuple[str, ...]:
    try:
        words = shlex.split(part, comments=True)
    except ValueError:
        words = part.split()
    while words and (words[0] in ("sudo", "set", "then", "do", "else", "!", "(", "exec", "time", "env")):
        words = words[1:]
    while words and re.fullmatch(r"\w+=.*", words[0]):
        words = words[1:]
    if words[:1] == ["["] or not words:
        return ()
    return tuple(words)


def _pairs(text: str) -> dict[str, str]:
    """``A=1 B="2"`` or ``A 1``; ARG without a value gives an empty one."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    if words and "=" not in words[0]:
        return {words[0]: " ".join(words[1:])}
    return dict(word.split("=", 1) for word in words if "=" in word)


def _substituted(text: str, arguments: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        return arguments.get(match[1] or match[3], "") or match[2] or match[0]

    return _VARIABLE.sub(value, text)
