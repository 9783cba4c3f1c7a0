"""What a build leaves to read: a log for people, and BuildKit's raw stream beside it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from tfenv.progress import Step, clean


class Log:
    """The log at ``path``, and beside it the raw stream, with the ending ``.rawjson``."""

    def __init__(self, path: Path, argv: Sequence[str]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._text: IO[str] = path.open("w", encoding="utf-8")
        self._raw: IO[bytes] = path.with_suffix(".rawjson").open("wb")
        self._states: dict[str, str] = {}
        self._text.write(f"$ {shlex.join(argv)}\n")

    def raw(self, line: bytes) -> None:
        """Keep a line of the client's output as it came."""
        self._raw.write(line)

    def text(self, line: str) -> None:
        """Write a line."""
        self._text.write(f"{clean(line)}\n")
        self._text.flush()

    def steps(self, changed: Sequence[Step]) -> None:
        """Write which of these steps have begun or ended."""
        for step in changed:
            if self._states.get(step.digest) != step.state and step.state != "waiting":
                self._states[step.digest] = step.state
                took = f" {step.spent:.1f} s" if step.completed else ""
                why = f": {step.error}" if step.error else ""
                self.text(f"#{step.number} {step.state}{took} {step.name}{why}")

    def output(self, number: int, text: str) -> None:
        """Write what step ``number`` printed."""
        for line in clean(text).splitlines():
            self.text(f"#{number} | {line}")

    def close(self) -> None:
        """Close both files."""
        self._text.close()
        self._raw.close()
