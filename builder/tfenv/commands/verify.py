"""``tfenv verify``"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import click
from click.core import ParameterSource

from tfenv.commands._common import (
    cells_arguments,
    each,
    emit,
    gpus_option,
    json_option,
    not_with_lines,
    require_digest,
    require_expected,
)
from tfenv.errors import UsageError
from tfenv.model import Cell


@click.command("verify")
@cells_arguments
@click.option(
    "--image",
    "foreign",
    multiple=True,
    metavar="IMAGE",
    help="Any other image with a TensorFlow, of which nothing is declared. May be given several times.",
)
@click.option(
    "--suite",
    type=click.Choice(["smoke", "full", "workers"]),
    default="full",
    show_default=True,
    help="full also reads every installed file and does longer checks; workers trains over two containers.",
)
@gpus_option
@click.option(
    "--expect-gpus", type=click.IntRange(min=0), metavar="N", help="Fail if the image sees another number."
)
@click.option("--again", is_flag=True, help="Also if this image has passed on these GPUs with this driver.")
@click.option(
    "--rootfs",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Verify an unpacked image, where there is no Docker.",
)
@click.option(
    "--lines",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Judge what the suite printed elsewhere, in the image of CELL's digest.",
)
@click.option("--digest", default="", help="With --lines: of the image there, if none is recorded.")
@click.option(
    "--kit",
    type=click.Path(path_type=Path, file_okay=False),
    help="Run nothing: write the suite into a folder for a host without tfenv, and print what to type there.",
)
@click.option("--reports", type=click.Path(path_type=Path), help="Folder for the reports.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    cells: tuple[str, ...],
    every: bool,
    foreign: tuple[str, ...],
    suite: str,
    gpus: str,
    expect_gpus: int | None,
    again: bool,
    rootfs: Path | None,
    lines: Path | None,
    digest: str,
    kit: Path | None,
    reports: Path | None,
    as_json: bool,
) -> int:
    """Run the verification suite in built images.

    Exits 0 when verified, 1 when a check failed, 3 when something could not be verified: without a GPU an
    image is never verified.
    """
    from tfenv import digest as digests
    from tfenv import pipeline, verify_elsewhere, verify_foreign, verify_former
    from tfenv.build import Host
    from tfenv.console import Console
    from tfenv.meant import Meant, all_meant
    from tfenv.report import Report, failures, require_room, to_ctrf, write
    from tfenv.store import default_store
    from tfenv.verify import FOREIGN, SUITES, kit_commands, write_kit
    from tfenv.workspace import here_or_checkout

    host = Host(default_store(os.environ), Console(), os.environ)
    _require_one_way(cells, every, foreign, kit=kit, rootfs=rootfs, lines=lines)
    not_with_lines(lines, gpus, expect_gpus)
    require_digest(digest, bool(lines), "--lines")
    require_expected(gpus, expect_gpus)
    kept = reports or host.store.root / "reports"
    if not kit:
        require_room(kept)
    (wanted,) = (one for one in SUITES if one == suite)
    said = ctx.get_parameter_source("suite") is not ParameterSource.DEFAULT
    asked = verify_elsewhere.Asked(
        suite=wanted, gpus=gpus, expect_gpus=expect_gpus, lines_suite=wanted if said else None
    )

    def show(name: str, made: Report, folder: Path) -> int:
        if made.suite != wanted:
            host.console.note(f"{name}: what is judged is the suite {made.suite}")
        data = {"cell": name, "verdict": made.verdict, "digest": made.digest, "reports": str(folder)}
        by = "" if made.suite == "full" else f" (by the suite {made.suite})"
        lines = (f"{name}: {made.words}{by}", failures(made), f"  {made.digest}", f"  reports: {folder}")
        text = "\n".join(line for line in lines if line)
        emit({**data, "suite": made.suite, "report": to_ctrf(made)}, as_json=as_json, text=text)
        return made.exit_code

    def packed(declared: Mapping[str, object], *named: str, digest: str | None) -> int:
        assert kit is not None
        write_kit(kit, declared)
        typed = kit_commands(named, wanted, gpus=gpus, expect_gpus=expect_gpus, digest=digest)
        data = {"cell": named[-1], "kit": str(kit), "commands": typed.commands, "bring": typed.bring}
        emit({**data, "remarks": typed.remarks}, as_json=as_json, text=typed.text)
        return 0

    def any_image(name: str) -> int:
        made, folder = verify_foreign.of_image(
            name, host, asked, reports=kept, rootfs=rootfs, lines=lines, digest=digest, again=again
        )
        return show(name, made, folder)

    if foreign and kit:
        found = verify_foreign.digest_here(foreign[0], host.env)
        return packed(FOREIGN, "--image", foreign[0], digest=found)
    if foreign:
        return each(foreign, str, any_image, host.console, as_json=as_json)
    workspace = here_or_checkout(host.console.note)

    def elsewhere(cell: Cell) -> tuple[Report, Path]:
        made = verify_elsewhere.of_cell(
            workspace, cell, host, asked, rootfs=rootfs, lines=lines, digest=digest
        )
        return made, write(made, kept)

    def in_engine(named: Meant) -> tuple[Report, Path]:
        cell, image = named.cell, named.image(os.environ)
        lock = named.lock(workspace, image, host)
        if not again:
            folders = [kept, workspace.folder(cell) / "reports"]
            former = verify_former.former_of(cell, lock, image.id, folders, asked)
            if former:
                host.console.note(f"{cell.name}: it has passed before; --again runs the suite again")
                return former
        return pipeline.check(
            cell, lock, image, host, suite=wanted, gpus=gpus, reports=reports, expect_gpus=expect_gpus
        )

    def one(named: Meant) -> int:
        cell, committed = named.cell, bool(kit or rootfs or lines)
        named.tell(host.console.note, committed=committed)
        if kit:
            recorded = digests.read(workspace.folder(cell))
            declared = pipeline.declared(cell, workspace.lock(cell), "")
            return packed(declared, cell.name, digest=None if recorded else "")
        return show(cell.name, *(elsewhere(cell) if committed else in_engine(named)))

    chosen = all_meant(cells, workspace, host.store.root, every=every)
    return each(chosen, lambda named: named.cell.name, one, host.console, as_json=as_json)


def _require_one_way(
    cells: tuple[str, ...],
    every: bool,
    foreign: tuple[str, ...],
    *,
    kit: Path | None,
    rootfs: Path | None,
    lines: Path | None,
) -> None:
    """Raises UsageError: images are named that do not go together, or several ways to a verdict."""
    if foreign and (cells or every):
        raise UsageError("cells are named, and --image", remedy="verify them one after the other")
    if len(foreign) > 1 and (rootfs or lines):
        raise UsageError("one folder, or one file, holds one image", remedy="name one image")
    if kit and (len(foreign) > 1 or len(cells) > 1 or every):
        raise UsageError("a kit is of one image", remedy="name one")
    if sum(map(bool, (kit, rootfs, lines))) > 1:
        raise UsageError("--kit, --rootfs and --lines are three ways", remedy="give one of them")
