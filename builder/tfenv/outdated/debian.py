"""What the Debian mirror has instead of the locked packages: security updates first."""

from __future__ import annotations

from collections.abc import Iterator

from tfenv.model import DebianPackage
from tfenv.outdated.debversion import order
from tfenv.outdated.model import Finding, Subject
from tfenv.outdated.probes import Offer, World

_SHOWN = 4


def debian_packages(subject: Subject, world: World) -> Iterator[Finding]:
    """Security updates in one finding, other newer versions in another, packages that are gone in a third."""
    lock = subject.lock
    offers = world.answers.debian.get(lock.suite) if lock and lock.debian else None
    if lock is None or offers is None:
        return
    security: list[str] = []
    others: list[str] = []
    gone: list[str] = []
    for package in lock.debian:
        newer = _newer(package, offers.get(package.name, ()))
        if newer:
            newest = max(newer, key=lambda offer: order(offer.version))
            urgent = any(offer.archive == "debian-security" for offer in newer)
            (security if urgent else others).append(f"{package.name} {package.version} -> {newest.version}")
        elif not any(offer.version == package.version for offer in offers.get(package.name, ())):
            gone.append(f"{package.name} {package.version}")
    upgrade = f"tfenv lock {subject.cell.name} --upgrade debian"
    if security:
        yield _finding(subject, "debian security", "act", "Debian packages have security updates", security)
    if others:
        yield _finding(subject, "debian", "info", "Debian packages have newer versions", others)
    if gone:
        yield Finding(
            cell=subject.cell.name,
            kind="debian gone",
            severity="act",
            message=f"{len(gone)} locked Debian packages are not on the mirror in any newer version: "
            + _some(gone),
            remedy=f"{upgrade}; until then a build takes them from the store or the snapshot archive",
            details=tuple(gone),
        )


def _newer(package: DebianPackage, offers: tuple[Offer, ...]) -> list[Offer]:
    return [offer for offer in offers if order(offer.version) > order(package.version)]


def _finding(subject: Subject, kind: str, severity: str, what: str, changes: list[str]) -> Finding:
    return Finding(
        cell=subject.cell.name,
        kind=kind,
        severity="act" if severity == "act" else "info",
        message=f"{len(changes)} {what}: {_some(changes)}",
        remedy=f"tfenv lock {subject.cell.name} --upgrade debian",
        details=tuple(changes),
    )


def _some(items: list[str]) -> str:
    return ", ".join(items[:_SHOWN]) + (f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else "")
