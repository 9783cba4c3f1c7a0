"""What JUnit XML and Markdown both tell of a report."""

from __future__ import annotations

from datetime import datetime, timezone

from .model import LATEST, Report

_WITHOUT = {"rootfs": "without Docker (rootfs)", "no container": "without a container"}


def time_of(report: Report) -> datetime:
    """When the verification began, in UTC; the nearest moment that has a date."""
    return datetime.fromtimestamp(min(max(report.started, 0), LATEST) / 1000, timezone.utc)


def about(report: Report) -> list[tuple[str, str]]:
    """Name and value of what identifies the image, the suite and the host."""
    host = report.host
    return [
        ("verdict", report.words),
        ("digest", report.digest),
        ("base", f"a stand-in for {report.stand_in}" if report.stand_in else ""),
        ("suite", f"{report.suite} {report.suite_hash[:12]}"),
        ("kernel", f"{host.kernel} {host.machine}".strip()),
        ("cpu", host.cpu),
        ran_by(host.docker),
        ("gpu", ", ".join(host.gpus) or "none"),
        ("driver", host.driver or "none"),
        ("gpus expected", "" if report.expect_gpus is None else str(report.expect_gpus)),
    ]


def ran_by(docker: str) -> tuple[str, str]:
    """What an image was run by, as a name and a value.

    Args:
        docker: the engine's version, or in its place what there was instead of one.
    """
    return ("docker", docker) if docker[:1].isdigit() or not docker else ("run", _WITHOUT.get(docker, docker))
