"""What is proved of a cell: its lock, the digest that is recorded for it, and the reports of that digest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import groupby
from pathlib import Path
from typing import Literal

from tfenv import digest, report
from tfenv.files import LOCK_NAME
from tfenv.lockfile import lock_hash, read_lock
from tfenv.model import Lock
from tfenv.report import Report
from tfenv.verify import NO_GPU

#: From the strongest claim to the weakest; ``failed`` is a claim too.
Kind = Literal["verified", "failed", "checked", "built", "locked", "partly", "open"]


@dataclass(frozen=True, kw_only=True)
class Proof:
    """One report of the digest that is recorded now.

    Args:
        gpus: as people say it, e.g. ``2 x NVIDIA H200``; empty without a GPU. names: each once.
        day: ISO date in UTC; failed, not_run: names of the checks that failed, or that these GPUs do not
            allow. reason: why it is unverified.
        stand_in: the base that was replaced in the image; what such an image gives proves nothing of a GPU.
    """

    verdict: report.Verdict
    suite: str
    gpus: str
    names: tuple[str, ...]
    driver: str
    day: str
    failed: tuple[str, ...] = ()
    not_run: tuple[str, ...] = ()
    reason: str = ""
    stand_in: str = ""

    @property
    def sentence(self) -> str:
        """What the report says, in one sentence."""
        built = f"Built with a stand-in for {self.stand_in}" if self.stand_in else "Built"
        if self.verdict == "fail":
            failed = ", ".join(self.failed) or "the suite did not end"
            return f"{built}; failed on {self.where}: {failed}."
        if self.verdict == "pass" and self.gpus:
            told = f"{built}; every check passed on" if self.stand_in else "Verified on"
            but = f"; {' and '.join(self.not_run)} not run" if self.not_run else ""
            return f"{told} {self.where}{but}."
        if self.reason == NO_GPU:
            return f"{built}; every check that needs no GPU passed on {self.where}."
        return f"{built}; not verified on {self.where}: {self.reason or 'the report names no GPU'}."

    @property
    def decides(self) -> bool:
        """Whether it says of a GPU that all passed, or that something failed."""
        return bool(self.gpus) and self.verdict in ("pass", "fail") and not self.stand_in

    @property
    def where(self) -> str:
        """On what and when, e.g. ``NVIDIA H200, driver 580.159.04, 2026-11-30``."""
        host = f"{self.gpus}, driver {self.driver}" if self.gpus else "a machine without a GPU"
        return f"{host}, {self.day}" + ("" if self.suite == "full" else f", {self.suite} suite")


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How far a cell has come.

    Args:
        digest: of the manifest, with ``sha256:``; empty where none counts.
        proofs: reports of that digest, the newest first. note: what else there is to say.
    """

    kind: Kind
    digest: str = ""
    proofs: tuple[Proof, ...] = ()
    note: str = ""

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the reports say, of those without a GPU only where there are no others; and the note."""
        decisive = [proof for proof in self.proofs if proof.decides]
        said = [proof.sentence for proof in decisive or self.proofs]
        return (*said, self.note) if self.note else tuple(said)


def standing(folder: Path) -> Standing:
    """How far the cell has come whose generated files are in ``folder``.

    Raises:
        TfenvError: the lock, the digest or a report is damaged.
    """
    path = folder / LOCK_NAME
    return of_lock(folder, read_lock(path) if path.is_file() else None)


def of_lock(folder: Path, lock: Lock | None, note: str = "") -> Standing:
    """How far an image has come whose lock was read: of a team's environment, that of all that is in it.

    Args:
        folder: of the recorded digest and the reports; note: what is to be said beside them.

    Raises:
        TfenvError: the digest or a report is damaged.
    """
    found = _of_lock(folder, lock)
    return replace(found, note=" ".join(part for part in (found.note, note) if part))


def _of_lock(folder: Path, lock: Lock | None) -> Standing:
    if lock is None:
        return Standing(kind="open")
    recorded = digest.read(folder)
    ours = recorded is not None and recorded.lock == lock_hash(lock)
    found = _proofs(folder / "reports", recorded.manifest) if recorded and ours else ()
    if not lock.complete:
        note = f"The digest of {lock.base_image} is not known yet."
        return Standing(kind="partly", proofs=tuple(of for of in found if of.stand_in), note=note)
    if recorded is None:
        return Standing(kind="locked")
    if not ours:
        return Standing(kind="locked", note="The digest that is recorded is of another lock.")
    found = tuple(of for of in found if not of.stand_in)
    return Standing(kind=_kind(found), digest=recorded.manifest, proofs=found)


def _kind(proofs: tuple[Proof, ...]) -> Kind:
    """One host on which something failed is enough not to call a cell verified."""
    if any(proof.verdict == "fail" for proof in proofs):
        return "failed"
    if any(proof.verdict == "pass" and proof.gpus for proof in proofs):
        return "verified"
    return "checked" if proofs else "built"


def _proofs(folder: Path, manifest: str) -> tuple[Proof, ...]:
    folders = sorted(path for path in folder.glob("*") if (path / report.CTRF).is_file())
    return proofs(of for of in map(report.read, folders) if of.digest == manifest)


def proofs(reports: Iterable[Report]) -> tuple[Proof, ...]:
    """The newest report of each kind of host, of those of one digest; one that could be verified, if any.

    A smoke suite in which nothing failed says no more than a full one before it, and one that was to see
    another number of GPUs than the host has says nothing of the image.
    """
    newest: dict[tuple[tuple[str, ...], str], Report] = {}
    for of in sorted(reports, key=lambda of: (of.verdict != "unverified", of.started, of.key)):
        if of.suite == "workers" or of.other_gpus:
            continue
        kind = of.host.gpus, of.host.driver
        if of.suite == "full" or of.verdict == "fail" or newest.get(kind, of).suite != "full":
            newest[kind] = of
    return tuple(_proof(of) for of in sorted(newest.values(), key=lambda of: (-of.started, of.key)))


def _proof(of: Report) -> Proof:
    counted = [(name, len(list(same))) for name, same in groupby(sorted(of.host.gpus))]
    return Proof(
        verdict=of.verdict,
        suite=of.suite,
        gpus=" and ".join(name if count == 1 else f"{count} x {name}" for name, count in counted),
        names=tuple(name for name, _ in counted),
        driver=of.host.driver,
        day=datetime.fromtimestamp(of.started / 1000, timezone.utc).date().isoformat(),
        failed=tuple(check.name for check in of.checks if check.status == "fail"),
        not_run=tuple(check.name for check in of.checks if check.status == "not-run"),
        reason=of.reason,
        stand_in=of.stand_in,
    )
