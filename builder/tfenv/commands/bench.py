"""``tfenv bench``"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from tfenv.commands._common import emit, json_option
from tfenv.commands._places import Duration, models_option, place_of, place_options


@click.command("bench")
@click.argument("cell", metavar="CELL")
@click.option("--quick", is_flag=True, help="What most people choose between, in 150 s.")
@click.option("--seconds", type=Duration(10, 7 * 86400), help="For all; 150 quickly, else an hour.")
@models_option
@place_options
@json_option
def command(
    cell: str,
    quick: bool,
    seconds: float | None,
    models: str,
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
    """Measure training on one and on several GPUs, and say what to switch on.

    ResNet-50 and a transformer in every precision, with XLA and without, and with each way to sum gradients.
    A configuration that hangs is ended and said to hang. Exits 3 when there is no GPU.
    """
    from dataclasses import asdict

    from tfenv.build import Host
    from tfenv.console import Console
    from tfenv.load import Record, advise, bench_files, bench_of, recorded_benches, write
    from tfenv.load.bare import BARE
    from tfenv.load.session import NoGpuHereError, run_in
    from tfenv.load.tables import bench_text
    from tfenv.meant import meant
    from tfenv.report import require_room
    from tfenv.store import default_store
    from tfenv.workspace import here_or_checkout

    host = Host(default_store(os.environ), Console(), os.environ)
    workspace = here_or_checkout(host.console.note)
    named = meant(cell, workspace, host.store.root)
    chosen = named.cell
    total = seconds or (150.0 if quick else 3600.0)
    kept = reports or host.store.root / "reports"
    require_room(kept)

    def tell(event: dict[str, Any]) -> None:
        if event["event"] == "row":
            what = " ".join(str(event[k]) for k in ("model", "precision", "gpus", "reduction"))
            shown = f"{event['throughput']:.0f} {event['unit']}" if event["status"] == "ok" else event["why"]
            host.console.note(f"  {what}{' XLA' if event['xla'] else ''}  {shown}")

    ran = run_in(
        workspace,
        named,
        host,
        place_of(gpus, rootfs, python, lines, digest, bare, allow_cpu),
        ["bench", "--models", models, "--seconds", str(total), *(["--quick"] if quick else [])],
        limit=total + 600,
        on_event=tell,
    )
    run = bench_of(ran.collected.events, noted=ran.collected.noted)
    if run.why == "no GPU":
        raise NoGpuHereError(
            "not run: TensorFlow's image sees no GPU", remedy=f"type: tfenv verify {chosen.name}"
        )
    recorded = recorded_benches(workspace.images, host.console.warn)
    others = [(name, other) for name, docker, other in recorded if name != chosen.name and docker != BARE]
    beside = next((one for name, docker, one in recorded if (name, docker) == (chosen.name, BARE)), None)
    record = Record(cell=chosen.name, digest=ran.digest, docker=ran.docker)
    advice = advise(run, others, beside if ran.docker != BARE else None)
    folder = write(kept, run, record, bench_files(run, record, advice))
    data = {"cell": chosen.name, "digest": ran.digest, "reports": str(folder), "why": run.why}
    rows = [asdict(row) for row in run.rows]
    text = (
        f"{bench_text(run, advice)}\n{chosen.name}: {run.why or 'measured'}\n  report: {folder / 'bench.md'}"
    )
    emit({**data, "rows": rows, "advice": [asdict(one) for one in advice]}, as_json=as_json, text=text)
    return 1 if run.why else 0
