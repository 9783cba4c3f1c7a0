from __future__ import annotations

from typing import Any

from tfenv.load import Bench, Row, advise
from tfenv.load.advice import efficiency, fastest

BATCH = 256


def row(precision: str, speed: float, *, xla: bool = False, gpus: int = 1, **more: Any) -> Row:
    usual: dict[str, Any] = {
        "status": "ok",
        "unit": "images/s",
        "low": speed * 0.98,
        "high": speed * 1.02,
        "step_ms": 1000 * BATCH * gpus / speed if speed else 0.0,
        "first_step": 20.0,
        "seconds": 40.0,
        "reduction": "hierarchical_copy" if gpus > 1 else "",
        "batch": BATCH,
    }
    given = {**usual, **more}
    return Row(model="resnet50", precision=precision, xla=xla, gpus=gpus, throughput=speed, **given)


def bench(*rows: Row, devices: tuple[str, ...] = ("NVIDIA H200",)) -> Bench:
    return Bench(started=0, seconds=1, facts={}, told={}, rows=rows, devices=devices)


def said(*rows: Row, others: tuple[tuple[str, Bench], ...] = ()) -> list[str]:
    return [one.text for one in advise(bench(*rows), others)]


# As measured on an H200 with TensorFlow 2.15.1.
H200 = (
    row("tf32", 1943),
    row("mixed_float16", 984),
    row("mixed_bfloat16", 1708),
    row("mixed_float16", 4921, xla=True, first_step=55.0),
)


def test_what_is_faster_is_switched_on_with_the_price_of_its_first_step():
    first = advise(bench(*H200))[0]
    assert first.text == (
        "resnet50: switch on mixed_float16 + XLA: 4921 images/s, 2.53x of float32 (TF32) (1943); "
        "its first step takes 35 s longer, which 439 steps pay back"
    )
    assert first.code == (
        'tf.keras.mixed_precision.set_global_policy("mixed_float16")',
        "model.compile(..., jit_compile=True), or tf.function(step, jit_compile=True)",
    )


def test_mixed_precision_that_is_slower_is_a_trap_that_names_the_way_out():
    assert (
        "resnet50: mixed_float16 without XLA is slower than float32 (TF32), 0.51x of it: "
        "only with XLA (4921 images/s)"
    ) in said(*H200)
    assert any(text.endswith("0.88x of it: not here") for text in said(*H200))


def test_mixed_precision_that_is_faster_is_no_trap():
    texts = said(row("tf32", 1000), row("mixed_float16", 2500))
    assert texts == ["resnet50: switch on mixed_float16: 2500 images/s, 2.50x of float32 (TF32) (1000)"]


def test_within_the_spread_nothing_is_switched_on():
    texts = said(row("tf32", 1000), row("mixed_bfloat16", 1010))
    assert texts == [
        "resnet50: switch nothing on: "
        "nothing is faster than float32 (TF32), TensorFlow's default: 1000 images/s"
    ]


def test_tf32_with_xla_needs_no_policy():
    assert (
        advise(bench(row("tf32", 1000), row("tf32", 2000, xla=True)))[0].code[0].startswith("model.compile")
    )


def test_without_the_default_the_fastest_is_named():
    assert said(row("mixed_float16", 5, xla=True)) == [
        "resnet50: mixed_float16 + XLA is the fastest of those that ran: 5 images/s"
    ]


def test_a_configuration_that_fails_is_said():
    failed = row(
        "mixed_bfloat16", 0, status="failed", why="TensorFlow has no kernel of this precision for a GPU"
    )
    assert said(row("tf32", 1000), failed)[-1] == (
        "resnet50: mixed_bfloat16 does not work here: TensorFlow has no kernel of this precision for a GPU"
    )


def test_a_hang_names_the_way_that_works():
    hung = row("tf32", 0, gpus=2, reduction="nccl", status="hung", seconds=60.0)
    found = advise(bench(row("tf32", 1000), row("tf32", 1900, gpus=2), hung))
    (one,) = [a for a in found if "sum gradients" in a.text]
    assert one.text == (
        "resnet50: sum gradients over 2 GPUs with hierarchical_copy: 1900 images/s "
        "(nccl hung, and was ended after 60 s)"
    )
    assert one.code == (
        "tf.distribute.MirroredStrategy(cross_device_ops=tf.distribute.HierarchicalCopyAllReduce())",
    )


def test_nccl_is_kept_where_it_is_as_fast():
    nccl = row("tf32", 1890, gpus=2, reduction="nccl")
    found = [a for a in advise(bench(row("tf32", 1000), row("tf32", 1900, gpus=2), nccl)) if "sum" in a.text]
    assert found[0].code == ("tf.distribute.MirroredStrategy()  # NCCL is its default",)
    slow = row("tf32", 1500, gpus=2, reduction="nccl")
    found = [a for a in advise(bench(row("tf32", 1000), row("tf32", 1900, gpus=2), slow)) if "sum" in a.text]
    assert "with hierarchical_copy: 1900 images/s (nccl 1500)" in found[0].text


def test_where_no_way_works_one_gpu_is_advised():
    broken = [row("tf32", 0, gpus=2, reduction=r, status="hung") for r in ("nccl", "hierarchical_copy")]
    assert "no way to sum gradients over 2 GPUs works" in said(row("tf32", 1000), *broken)[-1]


def test_gpus_that_are_worth_it_and_those_that_are_not():
    worth = said(row("tf32", 1000), row("tf32", 1900, gpus=2))
    assert worth[-1] == "resnet50: 2 GPUs give 1900 images/s, 95% of 2 times the fastest of one: worth it"
    assert "one GPU is as fast" in said(row("tf32", 1000), row("tf32", 1010, gpus=2))[-1]
    assert "a training on each GPU uses them better" in said(row("tf32", 1000), row("tf32", 1100, gpus=2))[-1]
    assert len(said(row("tf32", 1000))) == 1


def test_efficiency_is_of_the_same_work_only():
    one, wide = row("tf32", 1000), row("tf32", 1800, gpus=2)
    assert efficiency(wide, [one, wide]) == 0.9
    assert efficiency(wide, [row("tf32", 1000, batch=1), row("mixed_float16", 9), wide]) is None
    assert efficiency(row("tf32", 0, gpus=2, status="hung"), [one]) is None


def test_another_row_that_was_faster_on_this_gpu_is_named():
    other = bench(row("mixed_float16", 6000, xla=True))
    slow = bench(row("tf32", 10))
    texts = said(*H200, others=(("2.20", other), ("2.8", slow)))
    assert texts[-1] == (
        "resnet50: 2.20 was faster on this GPU: 6000 images/s with mixed_float16 + XLA, 1.22x"
    )


def test_another_row_counts_only_on_the_same_gpu_and_batch_and_if_faster():
    elsewhere = bench(row("tf32", 9000), devices=("NVIDIA A100",))
    other_batch = bench(row("tf32", 9000, batch=32))
    slower = bench(row("tf32", 4900))
    assert said(*H200, others=(("a", elsewhere), ("b", other_batch), ("c", slower))) == said(*H200)


def test_nothing_measured_gives_no_advice():
    assert said() == [] and said(row("tf32", 0, status="left-out")) == []
    assert fastest([]) is None


def test_what_the_container_costs_is_told_over_what_both_measured():
    inside = bench(row("tf32", 990), row("mixed_float16", 2000), row("tf32", 9, xla=True))
    outside = bench(row("tf32", 1000), row("mixed_float16", 2000))
    texts = [one.text for one in advise(inside, bare=outside)]
    assert texts[-1] == (
        "resnet50: in the container it has 99.5% of the speed without one "
        "(99.0% to 100.0% over 2 configurations)"
    )
    elsewhere = bench(row("tf32", 1000), devices=("NVIDIA A100",))
    nothing = bench(row("tf32", 1000, batch=1))
    for other in (elsewhere, nothing, None):
        assert not any("container" in one.text for one in advise(inside, bare=other))
