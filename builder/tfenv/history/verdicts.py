"""What the reports on this machine, and the committed ones, say of a digest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from tfenv import report
from tfenv.errors import IntegrityError
from tfenv.report import Report

#: Tells the verdict on a digest: pass, fail, unverified, or empty where there is no report.
Verdicts = Callable[[str], str]


def verdict(reports: Iterable[Report]) -> str:
    """The verdict of several reports on one digest: one host on which it failed is enough.

    Of each kind of host the newest counts that could be verified, if one could. One on a stand-in for the
    base says nothing of the base itself, nor one that was to see another number of GPUs of the image. What
    a suite found is not undone by another one but ``full``.
    """
    newest: dict[str, Report] = {}
    for of in sorted(reports, key=lambda of: (of.verdict != "unverified", of.started)):
        former = newest.get(of.host.key, of)
        undone = former.verdict != "fail" or of.suite in (former.suite, "full")
        if undone and not (of.stand_in or of.other_gpus):
            newest[of.host.key] = of
    found = {of.verdict for of in newest.values()}
    return next((word for word in ("fail", "pass", "unverified") if word in found), "")


def of_folders(folders: Iterable[Path]) -> Verdicts:
    """Reads the reports in folders of reports; a damaged one is none."""
    folders = tuple(folders)
    return lambda digest: verdict(reports(folders, digest))


def reports(folders: Iterable[Path], digest: str) -> list[Report]:
    """The reports of a digest in folders of reports; a damaged one is none."""
    found = []
    start = digest.removeprefix("sha256:")[:12]
    for folder in folders:
        for path in folder.glob(f"{start}-*"):
            try:
                found.append(report.read(path))
            except IntegrityError:
                continue
    return [of for of in found if of.digest == digest]


def everywhere(images: Path, store: Path) -> Verdicts:
    """Reads the reports of this machine and the committed ones.

    Args:
        images: the workspace's folder of generated files. store: the store's folder.
    """
    return of_folders([store / "reports", *sorted(images.glob("*/reports"))])
