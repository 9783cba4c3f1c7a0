"""``tfenv stress``"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from tfenv.commands._common import emit, json_option
from tfenv.commands._places import Duration, place_of, place_options


@click.command("stress")
@click.argument("cell", metavar="CELL")
@click.option(
    "--minutes",
    type=Duration(0.05, 24 * 60),
    default=5.0,
    show_default=True,
    help="How long; a hot room shows after ten or more.",
)
@click.option("--size", type=click.IntRange(0, 65536), default=0, help="Of the square matrices; 8192.")
@place_options
@json_option
def command(
    cell: str,
    minutes: float,
    size: int,
    gpus: str,
    rootfs: Path | None,
    python: Path | None,
    lines: Path | None,
    digest: str,
    bare: bool,
    reports: Path | None,
    allow_cpu: bool,
    as_json: bool,
) -> int:
    """Load the GPUs with matrix products, compare each result, and watch heat, clocks and errors.

    Exits 0 when all was right, 1 when a product was wrong or a GPU reported an error, 3 when there is
    no GPU or it could not be watched.
    """
    from tfenv.build import Host
    from tfenv.console import Console
    from tfenv.load import Record, judge, stress_files, stress_of, write
    from tfenv.load.session import run_in
    from tfenv.load.tables import whole, words
    from tfenv.meant import meant
    from tfenv.report import EXIT_CODES, require_room, summary
    from tfenv.store import default_store
    from tfenv.workspace import here_or_checkout

    host = Host(default_store(os.environ), Console(), os.environ)
    workspace = here_or_checkout(host.console.note)
    named = meant(cell, workspace, host.store.root)
    chosen = named.cell
    kept = reports or host.store.root / "reports"
    require_room(kept)

    def tell(event: dict[str, Any]) -> None:
        if event["event"] == "sample" and int(event["t"]) % 10 == 0:
            figures = (("celsius", "°C"), ("watts", "W"), ("sm_mhz", "MHz"))
            shown = "  ".join(f"{whole(event[name])} {unit}" for name, unit in figures)
            host.console.note(f"  {event['t']:5.0f} s  GPU {event['gpu']}  {shown}")

    ran = run_in(
        workspace,
        named,
        host,
        place_of(gpus, rootfs, python, lines, digest, bare, allow_cpu),
        ["stress", "--minutes", str(minutes), "--size", str(size)],
        limit=minutes * 60 + 600,
        on_event=tell,
    )
    done = ran.collected
    run = stress_of(done.events, noted=done.noted, tail=done.stderr[-4000:])
    judged = judge(run)
    record = Record(cell=chosen.name, digest=ran.digest, docker=ran.docker)
    folder = write(kept, run, record, stress_files(run, record))
    for check in judged.checks:
        host.console.note(f"  {check.status:<8} {check.name}  {summary(check)}")
    data = {"cell": chosen.name, "digest": ran.digest, "verdict": judged.verdict, "reports": str(folder)}
    text = f"{chosen.name}: {words(judged)}\n  {ran.digest}\n  report: {folder / 'stress.md'}"
    emit({**data, "reason": judged.reason}, as_json=as_json, text=text)
    return EXIT_CODES[judged.verdict]
