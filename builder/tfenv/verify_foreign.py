"""Verdicts on images that are none of ours: in the engine, unpacked, or by lines printed elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tfenv import build, report, verify
from tfenv.engine import probe, run_command
from tfenv.errors import TfenvError, UsageError
from tfenv.given_gpus import given
from tfenv.report import Check, Report
from tfenv.runline import choose_gpus, gpu_here
from tfenv.unpacked import read_unpacked
from tfenv.verify_elsewhere import Asked, in_rootfs, smi, whole_digest
from tfenv.verify_former import former
from tfenv.verify_lines import of_lines


def of_image(
    name: str,
    host: build.Host,
    asked: Asked,
    *,
    reports: Path,
    rootfs: Path | None = None,
    lines: Path | None = None,
    digest: str = "",
    again: bool = False,
) -> tuple[Report, Path]:
    """The verdict on the image ``name``, and the folder of its report.

    Args:
        rootfs: where it is unpacked. lines: what the suite printed in it, with its ``digest``.
        again: also if it has passed before.

    Raises:
        UsageError: there is no such image, or nobody says which one it was.
        NotReadyError: it cannot run here.
    """
    if lines is not None:
        if not digest:
            raise UsageError(f"nobody says which image {name} was", remedy="name it: --digest sha256:...")
        known = whole_digest(digest)
        made = of_lines(lines, verify.FOREIGN, known, asked.lines_suite, tell=host.console.warn)
    elif rootfs is not None:
        made = in_rootfs(read_unpacked(rootfs), verify.FOREIGN, asked, on_check=_tell(host))
    else:
        found = None if again else _former(name, host, asked, reports)
        if found:
            host.console.note(f"{name}: it has passed before; --again runs the suite again")
            return found
        made = in_engine(name, host, asked)
    made = replace(made, image=name)
    return made, report.write(made, reports)


def in_engine(name: str, host: build.Host, asked: Asked) -> Report:
    """Run the suite in an image of the engine, of whatever kind its store is."""
    wanted, note = choose_gpus(asked.gpus, gpu_here(lambda argv: run_command(argv).returncode == 0))
    if note:
        host.console.note("no NVIDIA GPU here: the checks that need one are not run")
    engine, gpus = probe(run_command, host.env), given(wanted)
    with verify.on_engine(host.env, asked.suite) as (containers, runner):
        told = containers.image(name)
        return verify.verify_image(
            str(told["Id"]) if told else name,
            verify.FOREIGN,
            digest=digest_of(name, told),
            host=verify.host_facts(smi, engine, gpus=gpus),
            runner=runner,
            suite=asked.suite,
            gpus=gpus,
            expect_gpus=asked.expect_gpus,
            endpoint=engine.endpoint,
            on_check=_tell(host),
        )


def digest_of(name: str, told: dict[str, Any] | None) -> str:
    """The manifest's digest, by what the engine says of an image.

    Where the store keeps none, and it came from no registry, the id of its configuration.

    Raises:
        UsageError: the engine does not have it.
    """
    if told is None:
        raise UsageError(f"there is no image {name} here", remedy=f"type: docker pull {name}")
    listed = [str(one).partition("@")[2] for one in told.get("RepoDigests") or ()]
    ours = str(told["Id"])
    return ours if ours in listed or not listed else listed[0]


def digest_here(name: str, env: Mapping[str, str]) -> str:
    """The digest of an image of the engine; empty where it is not there, or no engine answers."""
    from tfenv.container import connect

    try:
        with connect(env) as containers:
            return digest_of(name, containers.image(name))
    except TfenvError:
        return ""


def _former(name: str, host: build.Host, asked: Asked, reports: Path) -> tuple[Report, Path] | None:
    from tfenv.container import connect

    with connect(host.env) as containers:
        digest = digest_of(name, containers.image(name))
    return former(digest, lambda: verify.FOREIGN, [reports], asked)


def _tell(host: build.Host) -> Any:
    def tell(done: Check) -> None:
        host.console.note(f"  {done.status:<8} {done.name}  {report.summary(done)}")

    return tell
