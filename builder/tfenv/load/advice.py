"""What to switch on, drawn from the figures of a bench and from nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from .model import Bench, Row

HOW = {
    "mixed_float16": 'tf.keras.mixed_precision.set_global_policy("mixed_float16")',
    "mixed_bfloat16": 'tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")',
    "tf32": "tf.config.experimental.enable_tensor_float_32_execution(True)  # the default",
    "float32": "tf.config.experimental.enable_tensor_float_32_execution(False)",
}
XLA = "model.compile(..., jit_compile=True), or tf.function(step, jit_compile=True)"
REDUCE = {
    "nccl": "tf.distribute.MirroredStrategy()  # NCCL is its default",
    "hierarchical_copy": "tf.distribute.MirroredStrategy("
    "cross_device_ops=tf.distribute.HierarchicalCopyAllReduce())",
    "reduction_to_one_device": "tf.distribute.MirroredStrategy("
    "cross_device_ops=tf.distribute.ReductionToOneDevice())",
}
#: Several GPUs are worth it from this share of the sum of their speeds on.
WORTH = 0.6


@dataclass(frozen=True, kw_only=True)
class Advice:
    """One sentence with its figures, and what to type for it (empty: nothing)."""

    about: str
    text: str
    code: tuple[str, ...] = ()


def advise(bench: Bench, others: Iterable[tuple[str, Bench]] = (), bare: Bench | None = None) -> list[Advice]:
    """The advice of a bench.

    Args:
        others: recorded benches of other cells, by cell; only those on the same GPU count.
        bare: a recorded bench of the same wheels without a container.
    """
    others = [(cell, other) for cell, other in others if set(other.devices) == set(bench.devices)]
    found: list[Advice] = []
    for model in dict.fromkeys(row.model for row in bench.rows):
        rows = [row for row in bench.rows if row.model == model]
        found += _precision(model, rows)
        found += _reduction(model, rows)
        found += _scaling(model, rows)
        found += _elsewhere(model, rows, others)
        if bare is not None and bare.devices == bench.devices:
            found += _container(model, rows, [row for row in bare.rows if row.model == model])
    return found


def _ran(rows: Iterable[Row], **wanted: object) -> list[Row]:
    return [
        row for row in rows if row.status == "ok" and all(getattr(row, k) == v for k, v in wanted.items())
    ]


def fastest(rows: Iterable[Row]) -> Row | None:
    """The row with the highest throughput of those that ran."""
    return max(_ran(rows), key=lambda row: row.throughput, default=None)


def speed(row: Row) -> str:
    """``4921 images/s``."""
    return f"{row.throughput:.0f} {row.unit}"


def _times(one: Row, other: Row) -> str:
    return f"{one.throughput / other.throughput:.2f}x"


def _precision(model: str, rows: list[Row]) -> list[Advice]:
    singles = _ran(rows, gpus=1)
    top = fastest(singles)
    if top is None:
        return []
    usual = next(iter(_ran(singles, precision="tf32", xla=False)), None)
    if usual is None:
        return [
            Advice(about=model, text=f"{model}: {top.words} is the fastest of those that ran: {speed(top)}")
        ]
    if top is usual or top.low <= usual.high:
        same = f"nothing is faster than {usual.words}, TensorFlow's default: {speed(usual)}"
        found = [Advice(about=model, text=f"{model}: switch nothing on: {same}")]
    else:
        code = (HOW[top.precision],) if top.precision != "tf32" else ()
        than = f"{_times(top, usual)} of {usual.words} ({usual.throughput:.0f})"
        text = f"{model}: switch on {top.words}: {speed(top)}, {than}"
        found = [
            Advice(about=model, text=text + _price(top, usual), code=(*code, *((XLA,) if top.xla else ())))
        ]
    return [*found, *_traps(model, singles, usual), *_losses(model, rows)]


def _price(top: Row, usual: Row) -> str:
    """After how many steps the longer first step is paid back."""
    later = top.first_step - usual.first_step
    saved = (usual.step_ms - top.step_ms) / 1000
    if later <= 1 or saved <= 0:
        return ""
    return f"; its first step takes {later:.0f} s longer, which {later / saved:.0f} steps pay back"


def _traps(model: str, singles: list[Row], usual: Row) -> list[Advice]:
    found = []
    for row in singles:
        if row.xla or not row.precision.startswith("mixed") or row.high >= usual.low:
            continue
        with_xla = next(iter(_ran(singles, precision=row.precision, xla=True)), None)
        only = (
            f": only with XLA ({speed(with_xla)})" if with_xla and with_xla.low > usual.high else ": not here"
        )
        slower = f"is slower than {usual.words}, {_times(row, usual)} of it"
        text = f"{model}: {row.precision} without XLA {slower}{only}"
        found.append(Advice(about=model, text=text))
    return found


def _losses(model: str, rows: list[Row]) -> list[Advice]:
    failed = [row for row in rows if row.gpus == 1 and row.status in ("failed", "hung")]
    return [Advice(about=model, text=f"{model}: {row.words} does not work here: {row.why}") for row in failed]


def _reduction(model: str, rows: list[Row]) -> list[Advice]:
    """The way to sum gradients, of those tried with the same work."""
    found: list[Advice] = []
    works = {(row.precision, row.xla, row.gpus) for row in _ran(rows) if row.reduction}
    tried = [row for row in rows if row.reduction and row.status != "left-out"]
    for key in dict.fromkeys((row.precision, row.xla, row.gpus) for row in tried):
        same = [row for row in tried if (row.precision, row.xla, row.gpus) == key]
        if len({row.reduction for row in same}) < 2:
            continue
        top = fastest(same)
        broken = [f"{row.reduction} {_ending(row)}" for row in same if row.status != "ok"]
        if top is None:
            gone = "; ".join(broken)
            text = f"{model}: no way to sum gradients over {key[2]} GPUs works: {gone}; train on one GPU"
            found.append(Advice(about=model, text=text))
            continue
        nccl = next((row for row in same if row.reduction == "nccl" and row.status == "ok"), None)
        chosen = nccl if nccl is not None and nccl.high >= top.low else top
        rest = [f"{row.reduction} {row.throughput:.0f}" for row in _ran(same) if row is not chosen]
        text = f"{model}: sum gradients over {key[2]} GPUs with {chosen.reduction}: {speed(chosen)}"
        said = "; ".join([*rest, *broken])
        found.append(
            Advice(about=model, text=text + (f" ({said})" if said else ""), code=(REDUCE[chosen.reduction],))
        )
    if not works and tried and not found:
        text = f"{model}: {tried[0].reduction} {_ending(tried[0])}; train on one GPU"
        found.append(Advice(about=model, text=text))
    return found


def _ending(row: Row) -> str:
    return f"hung, and was ended after {row.seconds:.0f} s" if row.status == "hung" else f"failed: {row.why}"


def efficiency(row: Row, rows: Sequence[Row]) -> float | None:
    """Throughput over that of as many single GPUs, None where one was not measured."""
    single = _ran(rows, model=row.model, precision=row.precision, xla=row.xla, gpus=1, batch=row.batch)
    return row.throughput / (row.gpus * single[0].throughput) if row.status == "ok" and single else None


def _scaling(model: str, rows: list[Row]) -> list[Advice]:
    wide = fastest(row for row in rows if row.gpus > 1)
    one = fastest(row for row in rows if row.gpus == 1)
    if wide is None or one is None:
        return []
    share = wide.throughput / (wide.gpus * one.throughput)
    said = f"{wide.gpus} GPUs give {speed(wide)}, {share:.0%} of {wide.gpus} times the fastest of one"
    if wide.throughput <= one.high:
        text = f"{model}: {said}: one GPU is as fast ({speed(one)}); run a training on each instead"
    elif share < WORTH:
        text = f"{model}: {said}: a training on each GPU uses them better"
    else:
        text = f"{model}: {said}: worth it"
    return [Advice(about=model, text=text)]


def _elsewhere(model: str, rows: list[Row], others: list[tuple[str, Bench]]) -> list[Advice]:
    """The other cell that was fastest on such a GPU, if it is faster than this one."""
    here = fastest(row for row in rows if row.gpus == 1)
    if here is None:
        return []
    there = []
    for cell, other in others:
        same = [row for row in other.rows if row.model == model and row.gpus == 1 and row.batch == here.batch]
        if (row := fastest(same)) is not None:
            there.append((row.throughput, cell, row))
    if not there:
        return []
    _, cell, row = max(there, key=lambda item: item[0])
    if row.low <= here.high:
        return []
    text = f"{model}: {cell} was faster on this GPU: {speed(row)} with {row.words}, {_times(row, here)}"
    return [Advice(about=model, text=text)]


def _container(model: str, rows: list[Row], bare: list[Row]) -> list[Advice]:
    """What the container costs, over all configurations that were measured with it and without."""

    def key(row: Row) -> tuple[object, ...]:
        return row.precision, row.xla, row.gpus, row.reduction, row.batch

    without = {key(row): row.throughput for row in _ran(bare)}
    shares = [row.throughput / without[key(row)] for row in _ran(rows) if key(row) in without]
    if not shares:
        return []
    spread = f"{min(shares):.1%} to {max(shares):.1%} over {len(shares)} configurations"
    text = f"{model}: in the container it has {median(shares):.1%} of the speed without one ({spread})"
    return [Advice(about=model, text=text)]
