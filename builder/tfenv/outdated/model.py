"""What is looked at, what is found, and what could not be asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tfenv.errors import EXIT_FAILED, EXIT_OK, EXIT_UNVERIFIED
from tfenv.model import Cell, Lock

if TYPE_CHECKING:
    from tfenv.team.behind import Behind

#: Worst first. urgent: the lock can no longer be built as it is. act: somebody should change something.
#: info: good to know; a cell that is pinned on purpose is not outdated because the world goes on.
Severity = Literal["urgent", "act", "info"]
SEVERITIES: tuple[Severity, ...] = ("urgent", "act", "info")


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A cell and its lock, None where it has none.

    Of a team's environment the lock holds only what the environment adds: its row is a subject of its own.

    Args:
        row: of an environment, the lock of its row; behind: what its own lock does not follow.
    """

    cell: Cell
    lock: Lock | None
    row: Lock | None = None
    behind: Behind | None = None


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that today's world says against a lock.

    Args:
        cell: its name; empty where the matrix as a whole is meant.
        kind: one of the words in ``rules.RULES``'s findings, e.g. ``yanked``.
        remedy: what to type or change; names the cell where it needs a name.
        details: single facts behind a summary, e.g. ``numpy 1.26.4 -> 2.4.6``.
    """

    cell: str
    kind: str
    severity: Severity
    message: str
    remedy: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Unasked:
    """A question without an answer: ``what`` was to be asked of ``host``, and ``why`` it was not answered."""

    what: str
    host: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Result:
    """All of it. ``asked``: how many questions were asked, answered or not."""

    findings: tuple[Finding, ...]
    unasked: tuple[Unasked, ...]
    asked: int

    @property
    def exit_code(self) -> int:
        """1: something to do. 3: nothing found, but not everything could be asked. 0: nothing to do."""
        if any(finding.severity != "info" for finding in self.findings):
            return EXIT_FAILED
        return EXIT_UNVERIFIED if self.unasked else EXIT_OK
