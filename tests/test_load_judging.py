from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tfenv import factfiles
from tfenv.load import judge
from tfenv.load.model import Compared, Gpu, Progress, Sample, Stress, Xid
from tfenv.load.xids import meaning
from tfenv.report import Check

COUNTS = {"uncorrected_volatile": 0, "corrected_volatile": 0, "uncorrected_aggregate": 0, "remap_failed": 0}


def gpu(index: int, **after: int) -> Gpu:
    now = {**COUNTS, **after}
    return Gpu(index=index, name="H", slowdown_celsius=90, limit_watts=700, before=COUNTS, after=now)


def samples(**more: object) -> tuple[Sample, ...]:
    usual = {"celsius": 60.0, "sm_mhz": 1900.0, "watts": 650.0, "throttle": 0, **more}
    return tuple(Sample(t=float(t), gpu=g, **usual) for t in range(10, 30) for g in (0, 1))  # type: ignore[arg-type]


def progress(gpu: int, *tflops: float, wrong: int = 0) -> tuple[Progress, ...]:
    return tuple(
        Progress(t=12.0 + 2 * n, gpu=gpu, precision="float32", products=80, wrong=wrong, tflops=speed)
        for n, speed in enumerate(tflops)
    )


def compared(gpu: int, to_cpu: float = 1e-5, to_first: float = 0.0, *, equal: bool = True) -> Compared:
    return Compared(
        gpu=gpu, precision="float32", to_cpu=to_cpu, to_first_gpu=to_first, equal_bits=equal, tolerance=4e-3
    )


GOOD = Stress(
    minutes=1,
    started=1700000000000,
    seconds=70,
    facts={},
    driver="580",
    devices=("H", "H"),
    size=8192,
    gpus=(gpu(0), gpu(1)),
    samples=samples(),
    progress=progress(0, *[400.0] * 9) + progress(1, *[400.0] * 9),
    compared=(compared(0), compared(1)),
    xid_sources=("NVML",),
)


def check(run: Stress, name: str) -> Check:
    return next(check for check in judge(run).checks if check.name == name)


def only(run: Stress, name: str, severity: str) -> str:
    """The message of the one finding of that check."""
    (finding,) = check(run, name).findings
    assert finding.severity == severity and (finding.remedy or severity == "info")
    return finding.message


def test_a_good_run_passes_without_findings():
    judged = judge(GOOD)
    assert (judged.verdict, judged.reason) == ("pass", "")
    assert [c.status for c in judged.checks] == ["pass"] * 7
    assert [f for c in judged.checks for f in c.findings] == []


def test_a_wrong_product_fails_and_names_the_gpu():
    wrong = replace(GOOD, progress=progress(0, 400.0) + progress(1, 400.0, 400.0, wrong=1))
    assert judge(wrong).verdict == "fail"
    assert "GPU 1 gave wrong products in 2 batches" in only(wrong, "products", "error")
    assert "from 12 s on, in float32" in only(wrong, "products", "error")


def test_products_that_broke_off_fail():
    broke = replace(GOOD, broke={1: "InternalError: CUDA error"})
    assert judge(broke).verdict == "fail"
    assert "GPU 1: its products broke off: InternalError" in only(broke, "products", "error")


def test_a_gpu_without_products_fails():
    assert "GPU 1 made no product" in only(replace(GOOD, progress=progress(0, 400.0)), "products", "error")


def test_a_run_that_ended_early_fails_with_its_last_words():
    early = replace(GOOD, why="the products ended with code -9", tail="Killed")
    assert judge(early).verdict == "fail"
    assert check(early, "products").findings[0].evidence == "Killed"


@pytest.mark.parametrize("far", [0.01, math.nan, math.inf])
def test_a_product_that_is_not_the_cpus_fails(far):
    off = replace(GOOD, compared=(compared(0), compared(1, far)))
    assert judge(off).verdict == "fail"
    assert only(off, "reference", "error").startswith("GPU 1: the product in float32 is off by")


def test_gpus_that_differ_fail_and_those_that_round_differently_are_told():
    differ = replace(GOOD, compared=(compared(0), compared(1, 1e-5, 0.01, equal=False)))
    assert "GPU 1 and GPU 0 differ by 0.01" in only(differ, "across_gpus", "error")
    rounds = replace(GOOD, compared=(compared(0), compared(1, 1e-5, 1e-5, equal=False)))
    assert "round float32 differently" in only(rounds, "across_gpus", "warning")
    assert judge(rounds).verdict == "pass"
    assert check(replace(rounds, devices=("H", "A")), "across_gpus").findings == ()


def test_one_gpu_is_enough_for_a_pass():
    one = replace(
        GOOD, devices=("H",), gpus=(gpu(0),), progress=progress(0, 400.0, 400.0), compared=(compared(0),)
    )
    assert judge(one).verdict == "pass"
    assert check(one, "across_gpus").reason == "one GPU"


def unverified(run: Stress, reason: str) -> None:
    judged = judge(run)
    assert judged.verdict == "unverified" and reason in judged.reason


def test_every_gpu_is_compared_in_every_precision_or_it_is_no_pass():
    three = replace(
        GOOD,
        devices=("H", "H", "H"),
        gpus=(gpu(0), gpu(1), gpu(2)),
        progress=GOOD.progress + progress(2, *[400.0] * 9),
        samples=GOOD.samples + tuple(replace(s, gpu=2) for s in GOOD.samples if s.gpu),
        compared=(compared(0), compared(1), compared(2)),
    )
    assert judge(three).verdict == "pass"
    unverified(replace(three, compared=(compared(0), compared(1))), "not compared: GPU 2 in float32")
    unverified(replace(GOOD, compared=(compared(0),)), "across_gpus was not run")
    half = replace(compared(0), precision="float16")
    unverified(replace(GOOD, compared=(*GOOD.compared, half)), "not compared: GPU 1 in float16")
    unverified(replace(GOOD, compared=()), "nothing was compared")


def test_every_gpu_is_looked_at_under_load_or_it_is_no_pass():
    first = tuple(s for s in GOOD.samples if not s.gpu)
    unverified(replace(GOOD, samples=first), "GPU 1 was not looked at under load")
    early = tuple(replace(s, t=s.t - 60) for s in GOOD.samples)
    unverified(replace(GOOD, samples=early), "GPU 0, 1 was not looked at under load")
    unverified(replace(GOOD, gpus=(gpu(0),)), "GPU 1 was not looked at under load")


def test_a_run_that_was_shorter_than_it_says_fails():
    assert "it ran for 9 s and was to run for 60 s" in only(replace(GOOD, seconds=9), "products", "error")
    unverified(replace(GOOD, devices=(), progress=(), compared=()), "nobody says on which GPUs")


def test_what_no_comparison_gives_is_wrong():
    for wrong in (replace(compared(1), to_cpu=-1.0), replace(compared(1), to_cpu=0.5, tolerance=1.0)):
        assert judge(replace(GOOD, compared=(compared(0), wrong))).verdict == "fail"
    far = replace(compared(1), to_first_gpu=0.5, tolerance=1.0)
    assert judge(replace(GOOD, compared=(compared(0), far))).verdict == "fail"


def test_a_speed_of_nothing_is_no_division_by_it():
    assert judge(replace(GOOD, progress=progress(0, *[0.0] * 9) + progress(1, *[0.0] * 9))).verdict == "pass"


def test_no_gpu_is_unverified_and_never_a_pass():
    judged = judge(Stress(minutes=1, started=0, seconds=1, facts={}, why="no GPU"))
    assert (judged.verdict, judged.reason) == ("unverified", "no GPU")
    assert {c.status for c in judged.checks} == {"not-run"}


def test_nothing_that_was_said_is_never_a_pass():
    assert judge(Stress(minutes=1, started=0, seconds=1, facts={})).verdict == "unverified"


def test_heat_that_slows_down_is_a_finding_with_a_remedy():
    hot = replace(GOOD, samples=samples(throttle=0x40, celsius=91.0, sm_mhz=1100.0))
    messages = [f.message for f in check(hot, "cooling").findings]
    assert messages[0] == (
        "GPU 0 slowed down because of its heat in 100% of the samples at up to 91 °C, "
        "its clock down to 1100 MHz"
    )
    assert len(messages) == 2 and judge(hot).verdict == "pass"


def test_heat_that_nearly_slows_down_is_told():
    warm = replace(GOOD, samples=samples(celsius=88.0))
    assert "came to 88 °C; it slows down at 90 °C" in check(warm, "cooling").findings[0].message


@pytest.mark.parametrize(
    ("mask", "severity", "said"),
    [
        (0x80, "warning", "power brake"),
        (0x8, "warning", "by its hardware"),
        (0x4, "info", "limit of power of 700 W"),
    ],
)
def test_other_reasons_to_slow_down_are_told(mask, severity, said):
    finding = check(replace(GOOD, samples=samples(throttle=mask)), "cooling").findings[0]
    assert finding.severity == severity and said in finding.message


def test_what_it_does_before_the_load_does_not_count():
    idle = tuple(replace(s, t=s.t - 10, throttle=0x40) for s in GOOD.samples if s.t < 14)
    assert check(replace(GOOD, samples=idle + GOOD.samples), "cooling").findings == ()


def test_gpus_that_cannot_be_watched_are_unverified():
    blind = replace(GOOD, samples=(), gpus=(), unsampled="libnvidia-ml.so.1: cannot open")
    judged = judge(blind)
    assert judged.verdict == "unverified" and "libnvidia-ml.so.1" in judged.reason


def test_speed_that_falls_and_a_slow_neighbour_are_told():
    falls = replace(GOOD, progress=progress(0, *[400.0] * 9) + progress(1, *[400.0] * 5, *[300.0] * 4))
    assert "GPU 1 ended at 75% of its first speed" in check(falls, "steady").findings[0].message
    slow = replace(GOOD, progress=progress(0, *[400.0] * 9) + progress(1, *[300.0] * 9))
    assert "GPU 1 has 75% of the speed of its neighbour" in only(slow, "steady", "warning")
    assert check(replace(slow, devices=("H", "A")), "steady").findings == ()


def test_uncorrected_memory_errors_fail_and_corrected_ones_are_told():
    bad = replace(GOOD, gpus=(gpu(0), gpu(1, uncorrected_volatile=2)))
    assert judge(bad).verdict == "fail"
    assert only(bad, "memory_errors", "error") == "GPU 1: 2 uncorrected memory errors during the run"
    corrected = replace(GOOD, gpus=(gpu(0), gpu(1, corrected_volatile=1)))
    assert judge(corrected).verdict == "pass"
    assert "1 corrected memory errors" in only(corrected, "memory_errors", "warning")
    assert "no spare rows" in only(replace(GOOD, gpus=(gpu(0, remap_failed=1),)), "memory_errors", "error")


def test_past_memory_errors_are_told():
    old = replace(gpu(0), before={**COUNTS, "uncorrected_aggregate": 3})
    assert "3 uncorrected memory errors in its life" in only(
        replace(GOOD, gpus=(old,)), "memory_errors", "warning"
    )


def test_gpus_without_counters_pass():
    none = replace(GOOD, gpus=(Gpu(index=0, before={"uncorrected_volatile": None}, after={}), gpu(1)))
    assert judge(none).verdict == "pass"
    neither = replace(GOOD, gpus=(Gpu(index=0), Gpu(index=1)))
    assert check(neither, "memory_errors").reason == "the GPUs do not tell"
    assert judge(neither).verdict == "pass"


def test_counters_that_are_not_told_at_the_end_are_no_pass():
    lost = replace(gpu(1), after={})
    unverified(replace(GOOD, gpus=(gpu(0), lost)), "GPU 1 did not tell its counters at the end")
    bad = replace(GOOD, gpus=(gpu(0, uncorrected_volatile=1), lost))
    assert judge(bad).verdict == "fail"
    never = replace(gpu(1), before={}, after={})
    assert judge(replace(GOOD, gpus=(gpu(0), never))).verdict == "pass"


def test_an_xid_fails_with_its_meaning():
    bad = replace(GOOD, xids=(Xid(xid=79, gpu=1), Xid(xid=79, gpu=-1, pci="0000:3b:00")))
    assert judge(bad).verdict == "fail"
    assert only(bad, "xid", "error") == "GPU 1: Xid 79: the GPU has fallen off the bus"
    untold = replace(GOOD, xid_sources=())
    assert check(untold, "xid").status == "not-run" and judge(untold).verdict == "pass"


def test_every_xid_has_a_remedy_also_an_unknown_one():
    assert all(row["meaning"] and row["remedy"] for row in factfiles.read("xids")["rows"])
    assert meaning(9999)[0] == "see NVIDIA's list of Xid errors"


@pytest.mark.parametrize(
    ("tail", "remedy"),
    [("NCCL WARN", "the last that it printed is the evidence"), ("", "look at its stderr; run it again")],
)
def test_what_broke_off_points_at_what_there_is(tail: str, remedy: str) -> None:
    checks = judge(replace(GOOD, why="it was broken off", tail=tail)).checks
    (found,) = (check.findings[0] for check in checks if check.name == "products")
    assert (found.evidence, found.remedy) == (tail, remedy)
