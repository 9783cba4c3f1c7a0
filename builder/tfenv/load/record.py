"""Files of a run, as they are committed beside the cell: JSON to read back, Markdown and SVG for people."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tfenv.errors import IntegrityError
from tfenv.files import write_all
from tfenv.report import Host, ran_by

from .advice import Advice
from .charts import speedup_chart, stress_chart
from .collect import made, require_measured
from .judging import judge
from .model import Bench, Row, Stress
from .tables import bench_page, minutes, stress_page

Kind = Literal["stress", "bench"]
FORMAT = 1
_SAMPLES = 300  # for each GPU in the file; the chart and the verdict use all


@dataclass(frozen=True, kw_only=True)
class Record:
    """What was run.

    Args:
        digest: of the image's manifest, with ``sha256:``.
        docker: version of the engine; ``rootfs`` for an image that was run without one.
    """

    cell: str
    digest: str
    docker: str = ""

    def host(self, run: Stress | Bench) -> Host:
        """The host as reports tell it."""
        facts = run.facts
        return Host(
            kernel=str(facts.get("kernel", "")),
            machine=str(facts.get("machine", "")),
            cpu=str(facts.get("cpu", "")),
            docker=self.docker,
            gpus=run.devices,
            driver=run.driver,
        )

    def folder(self, run: Stress | Bench, kind: Kind) -> str:
        """Name of the folder: kind, digest, program and host; never that of a verification."""
        return f"{kind}-{self.digest.removeprefix('sha256:')[:12]}-{load_hash(run)[:12]}-{self.host(run).key}"


def load_hash(run: Stress | Bench) -> str:
    """Hex sha256 of all that figures depend on beside image and host: the program and what it was told."""
    told = {"minutes": run.minutes, "size": run.size} if isinstance(run, Stress) else dict(run.told)
    text = json.dumps([run.facts.get("program", ""), told], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def stress_files(run: Stress, record: Record) -> dict[str, str]:
    """``stress.json``, ``stress.svg`` and ``stress.md`` by name."""
    judged = judge(run)
    about = _about("stress", run, record)
    thin = replace(run, samples=tuple(_thinned(run)))
    data = {
        **about,
        "verdict": judged.verdict,
        "reason": judged.reason,
        "checks": [asdict(check) for check in judged.checks],
        "run": asdict(thin),
    }
    title = f"{record.cell}: {minutes(run.minutes)} of matrix products"
    return {
        "stress.svg": stress_chart(run, title),
        "stress.md": stress_page(run, judged, _named(about)),
        "stress.json": _json(data),
    }


def bench_files(run: Bench, record: Record, advice: Sequence[Advice]) -> dict[str, str]:
    """``bench.json``, ``bench.svg`` and ``bench.md`` by name.

    Args:
        advice: of this bench, as of ``advise``.
    """
    about = _about("bench", run, record)
    data = {**about, "advice": [asdict(one) for one in advice], "run": asdict(run)}
    return {
        "bench.svg": speedup_chart(run, f"{record.cell}: speed-up of training"),
        "bench.md": bench_page(run, advice, _named(about)),
        "bench.json": _json(data),
    }


def write(parent: Path, run: Stress | Bench, record: Record, files: Mapping[str, str]) -> Path:
    """Write the files to ``parent/<folder>/`` and return that folder.

    Raises:
        NotReadyError: it cannot be written.
    """
    kind: Kind = "stress" if isinstance(run, Stress) else "bench"
    folder = parent / record.folder(run, kind)
    write_all(folder, files)
    return folder


def read_bench(path: Path) -> tuple[str, str, Bench]:
    """The cell, what it was run by (see ``Record.docker``) and the bench in a ``bench.json``.

    Raises:
        IntegrityError: it is not one of ours.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        run = data["run"]
        rows = tuple(made(Row, _numbers(row)) for row in run["rows"])
        require_measured(rows)
        if not all(isinstance(one, str) for one in (data["cell"], data["host"]["docker"], *run["devices"])):
            raise TypeError("a text is none")
        return (
            data["cell"],
            data["host"]["docker"],
            Bench(**{**run, "rows": rows, "devices": tuple(run["devices"])}),
        )
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise IntegrityError(
            f"{path} is not a usable bench: {error!r}", remedy="delete it and run `tfenv bench`"
        ) from None


def _numbers(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with the numbers again for which JSON has only words, see ``_finite``."""
    return {name: float(value) if value in ("nan", "inf", "-inf") else value for name, value in row.items()}


def recorded_benches(
    images: Path, warn: Callable[[str], None] = lambda _said: None
) -> list[tuple[str, str, Bench]]:
    """Every recorded bench of the cells in ``images``, each as of ``read_bench``.

    Args:
        warn: is told of one that is damaged: a run of an hour is not lost for it.
    """
    found = []
    for path in sorted(images.glob("*/reports/bench-*/bench.json")):
        try:
            found.append(read_bench(path))
        except IntegrityError as error:
            warn(f"{error.message}; it is left out of the advice")
    return found


def _about(kind: Kind, run: Stress | Bench, record: Record) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "kind": kind,
        "cell": record.cell,
        "digest": record.digest,
        "load_hash": load_hash(run),
        "host": asdict(record.host(run)),
    }


def _named(about: Mapping[str, Any]) -> dict[str, str]:
    host = about["host"]
    return {
        "cell": about["cell"],
        "digest": about["digest"],
        "gpu": ", ".join(host["gpus"]) or "none",
        "driver": host["driver"],
        "kernel": f"{host['kernel']} {host['machine']}".strip(),
        "cpu": host["cpu"],
        **dict([ran_by(host["docker"])]),
    }


def _thinned(run: Stress) -> list[Any]:
    """At most ``_SAMPLES`` of each GPU, evenly."""
    kept = []
    for gpu in sorted({sample.gpu for sample in run.samples}):
        own = [sample for sample in run.samples if sample.gpu == gpu]
        step = -(-len(own) // _SAMPLES) or 1
        kept += own[::step]
    return kept


def _json(data: object) -> str:
    # No NaN: other readers do not take it.
    return json.dumps(_finite(data), indent=1, sort_keys=True, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)
    if isinstance(value, Mapping):
        return {str(name): _finite(inner) for name, inner in value.items()}
    return [_finite(inner) for inner in value] if isinstance(value, (list, tuple)) else value
