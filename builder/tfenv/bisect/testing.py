"""Find out whether the command passes with a set of pins, once for each set."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tfenv.bisect.changes import Rules, conflicts
from tfenv.bisect.command import judge
from tfenv.bisect.journal import Journal, Verdict
from tfenv.bisect.model import PinSet
from tfenv.bisect.venv import Builder, BuildRefused, Built

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What is run in each environment.

    Args:
        repeat: how often; one failure is enough.
        timeout: seconds; running longer is a failure. None for no limit.
    """

    command: tuple[str, ...]
    repeat: int = 1
    timeout: float | None = None


@dataclass
class Tester:
    """Builds and tests what is not known yet, and keeps every answer.

    Args:
        rules: of what packages ask of each other; grows with the environments that are made.
        say: gets a line for each answer.
    """

    journal: Journal
    builder: Builder
    trial: Trial
    rules: Rules
    say: Say
    clock: Callable[[], float] = time.monotonic

    def ask(self, pins: PinSet, label: str, *, fits: frozenset[str] | None = None) -> Verdict:
        """The verdict on a set of pins.

        Args:
            fits: conflicts between packages that count for nothing, as an end has them; any other one
                means that this mixture is skipped. None where a resolver or a person vouches for the set.

        Raises:
            NotJudgedError: the command said nothing. NotReadyError: nothing can be built on this host.
        """
        known = self.journal.verdicts.get(pins.digest)
        if known is not None:
            return known
        verdict = replace(self._find_out(pins, fits), label=label)
        self.journal.verdict(pins, verdict)
        why = f": {verdict.why}" if verdict.why else ""
        self.say(f"[{len(self.journal.verdicts)}] {label}: {verdict.word}, {verdict.seconds:.1f} s{why}")
        return verdict

    def misfits(self, pins: PinSet) -> frozenset[str]:
        """What does not fit together in a set, as far as is known."""
        return conflicts(pins, replace(self.rules, requires=self.journal.requires))

    def _find_out(self, pins: PinSet, fits: frozenset[str] | None) -> Verdict:
        started = self.clock()
        if why := self._unfit(pins, fits):
            return Verdict(word="skip", why=why)
        try:
            with self.builder.build(pins) as built:
                self.journal.metadata(built.requires)
                if why := self._unfit(pins, fits):
                    return Verdict(word="skip", why=why, built=True, seconds=self.clock() - started)
                verdict = self._run(built)
        except BuildRefused as refused:
            why = f"it cannot be installed: {str(refused)[:300]}"
            return Verdict(word="skip", why=why, seconds=self.clock() - started)
        return replace(verdict, seconds=self.clock() - started)

    def _unfit(self, pins: PinSet, fits: frozenset[str] | None) -> str:
        if fits is None:
            return ""
        return "; ".join(sorted(self.misfits(pins) - fits)[:2])

    def _run(self, built: Built) -> Verdict:
        log = self._log()
        for number in range(1, self.trial.repeat + 1):
            ran = built.run(self.trial.command, log, self.trial.timeout)
            word, why = judge(ran, self.trial.command)
            if word != "good":
                which = f" (run {number} of {self.trial.repeat})" if self.trial.repeat > 1 else ""
                return Verdict(word=word, why=why + which, built=True, log=self._name(log))
        return Verdict(word="good", built=True, log=self._name(log))

    def _log(self) -> Path:
        log = self.journal.folder / "logs" / f"{len(self.journal.verdicts) + 1:03}.txt"
        log.unlink(missing_ok=True)  # of a test that was interrupted
        return log

    def _name(self, log: Path) -> str:
        return str(log.relative_to(self.journal.folder))


def failing_line(verdict: Verdict, folder: Path, command: Sequence[str]) -> str:
    """How a failed test and its log are told."""
    log = f"\nits output: {folder / verdict.log}" if verdict.log else ""
    return f"{' '.join(command)}: {verdict.why or verdict.word}{log}"
