"""The verdict on a run of stress. Fails closed: what was not looked at is never called good."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from tfenv.report import Check, Finding, Status, Verdict

from .model import Gpu, Sample, Stress
from .xids import meaning

ONE_GPU = "one GPU"
UNTOLD = "the GPUs do not tell"
NO_GPU = "no GPU"

# nvml.h: nvmlClocksEventReasons
_THERMAL = 0x20 | 0x40
_BRAKE = 0x80
_POWER_CAP = 0x4
_HARDWARE = 0x8
_FELL = 0.9  # of its own speed, or of its neighbour's, is still called steady
_LOOSEST = 0.05  # a tolerance of more would let a wrong product pass
#: By check the reasons for which it may be not run and the whole pass all the same.
ACCEPTED = {"across_gpus": (ONE_GPU,), "memory_errors": (UNTOLD,), "xid": (UNTOLD,)}


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The verdict with its checks; ``reason`` says why it is unverified."""

    verdict: Verdict
    checks: tuple[Check, ...]
    reason: str = ""


def judge(run: Stress) -> Judgement:
    """Pass needs: it ran to its end, no product was wrong, and the GPUs were looked at meanwhile."""
    if run.why == NO_GPU:
        names = ("products", "reference", "across_gpus", "cooling", "steady", "memory_errors", "xid")
        checks = tuple(Check(name=name, status="not-run", reason=NO_GPU) for name in names)
        return Judgement(verdict="unverified", checks=checks, reason=NO_GPU)
    checks = tuple(look(run) for look in (_products, _reference, _across, _cooling, _steady, _memory, _xid))
    if any(check.status == "fail" for check in checks):
        return Judgement(verdict="fail", checks=checks)
    left = [c for c in checks if c.status == "not-run" and c.reason not in ACCEPTED.get(c.name, ())]
    if left:
        reason = "; ".join(f"{check.name} was not run: {check.reason}" for check in left)
        return Judgement(verdict="unverified", checks=checks, reason=reason)
    return Judgement(verdict="pass", checks=checks)


def _check(name: str, findings: list[Finding], **facts: object) -> Check:
    status: Status = "fail" if any(f.severity == "error" for f in findings) else "pass"
    return Check(name=name, status=status, findings=tuple(findings), facts=facts)


def _error(message: str, remedy: str, evidence: str = "") -> Finding:
    return Finding(severity="error", message=message, remedy=remedy, evidence=evidence)


def _warning(message: str, remedy: str) -> Finding:
    return Finding(severity="warning", message=message, remedy=remedy)


_FAULTY = "run it again; if it is wrong again, take this GPU out of use: its memory or its cores are faulty"


def _products(run: Stress) -> Check:
    """Every product is, bit for bit, the first of the same inputs on its GPU."""
    found = []
    if run.why:
        last = "the last that it printed is the evidence" if run.tail else "look at its stderr; run it again"
        found.append(_error(run.why, last, run.tail))
    elif not run.devices:
        return Check(name="products", status="not-run", reason="nobody says on which GPUs")
    elif run.seconds < run.minutes * 60:
        message = f"it ran for {run.seconds:.0f} s and was to run for {run.minutes * 60:.0f} s"
        found.append(_error(message, "run it again"))
    for gpu, why in sorted(run.broke.items()):
        found.append(_error(f"GPU {gpu}: its products broke off: {why}", _FAULTY))
    counts = dict.fromkeys(range(len(run.devices)), 0)
    for step in run.progress:
        counts[step.gpu] = counts.get(step.gpu, 0) + step.products
    for gpu, count in counts.items():
        wrong = [step for step in run.progress if step.gpu == gpu and step.wrong]
        if wrong:
            first, groups = wrong[0], sum(step.differing for step in wrong)
            found.append(
                _error(
                    f"GPU {gpu} gave wrong products in {sum(s.wrong for s in wrong)} batches of 8: not "
                    f"the bits of the first product of the same inputs; from {first.t:.0f} s on, "
                    f"in {first.precision}",
                    _FAULTY,
                    f"groups of 8 bytes that differ: {groups}",
                )
            )
        elif not count:
            found.append(_error(f"GPU {gpu} made no product", "run it again"))
    return _check("products", found, products=counts, size=run.size)


def _reference(run: Stress) -> Check:
    """The first products agree with the CPU's in float64."""
    if reason := _uncompared(run, range(len(run.devices))):
        return Check(name="reference", status="not-run", reason=reason)
    found = [
        _error(
            f"GPU {one.gpu}: the product in {one.precision} is off by {one.to_cpu:.2g} of its largest "
            f"element (tolerance {one.tolerance:g})",
            _FAULTY,
        )
        for one in run.compared
        if not 0 <= one.to_cpu <= min(one.tolerance, _LOOSEST)  # also NaN
    ]
    largest = max((one.to_cpu for one in run.compared if math.isfinite(one.to_cpu)), default=math.nan)
    return _check("reference", found, largest=largest)


def _uncompared(run: Stress, gpus: range) -> str:
    """Why not all of these GPUs were compared, in every precision; empty if they were."""
    if not run.compared or not gpus:
        return "nothing was compared"
    done = {(one.gpu, one.precision) for one in run.compared}
    precisions = {one.precision for one in run.compared} | {one.precision for one in run.progress}
    left = [f"GPU {gpu} in {name}" for gpu in gpus for name in sorted(precisions) if (gpu, name) not in done]
    return f"not compared: {', '.join(left)}" if left else ""


def _across(run: Stress) -> Check:
    """The first products agree across the GPUs."""
    others = [one for one in run.compared if one.gpu]
    if not others and len(run.devices) == 1:
        return Check(name="across_gpus", status="not-run", reason=ONE_GPU)
    if reason := _uncompared(run, range(1, len(run.devices))):
        return Check(name="across_gpus", status="not-run", reason=reason)
    found = []
    for one in others:
        if not 0 <= one.to_first_gpu <= min(one.tolerance, _LOOSEST):
            found.append(
                _error(
                    f"GPU {one.gpu} and GPU 0 differ by {one.to_first_gpu:.2g} in {one.precision} "
                    f"(tolerance {one.tolerance:g})",
                    _FAULTY,
                )
            )
        elif not one.equal_bits and len(set(run.devices)) == 1:
            message = f"GPU {one.gpu} and GPU 0 are of one kind, but round {one.precision} differently"
            found.append(_warning(message, "trainings on one and on the other cannot be equal bit for bit"))
    return _check("across_gpus", found, equal_bits=all(one.equal_bits for one in others))


def _loaded(run: Stress, gpu: int) -> list[Sample]:
    """The samples while the products were made."""
    times = [step.t for step in run.progress if step.gpu == gpu]
    if not times:
        return []
    return [s for s in run.samples if s.gpu == gpu and min(times) - 2 <= s.t <= max(times)]


def _cooling(run: Stress) -> Check:
    """No GPU slows down because it is hot, or because its power supply cannot follow."""
    if run.unsampled or not run.samples:
        return Check(name="cooling", status="not-run", reason=run.unsampled or "no sample was taken")
    found: list[Finding] = []
    facts: dict[str, object] = {}
    known = {gpu.index: gpu for gpu in run.gpus}
    if left := [str(gpu) for gpu in range(len(run.devices)) if not (gpu in known and _loaded(run, gpu))]:
        reason = f"GPU {', '.join(left)} was not looked at under load"
        return Check(name="cooling", status="not-run", reason=reason)
    for gpu in run.gpus:
        if samples := _loaded(run, gpu.index):
            found += _slowed(gpu, samples)
            facts[f"gpu{gpu.index}"] = _extremes(samples)
    return _check("cooling", found, **facts)


def _slowed(gpu: Gpu, samples: list[Sample]) -> Iterator[Finding]:
    hottest = max((s.celsius for s in samples if s.celsius is not None), default=None)
    clocks = [s.sm_mhz for s in samples if s.sm_mhz is not None]
    lowest = f", its clock down to {min(clocks):.0f} MHz" if clocks else ""

    def share(mask: int) -> float:
        return sum(bool((s.throttle or 0) & mask) for s in samples) / len(samples)

    if (hot := share(_THERMAL)) > 0:
        at = f" at up to {hottest:.0f} °C" if hottest is not None else ""
        yield _warning(
            f"GPU {gpu.index} slowed down because of its heat in {hot:.0%} of the samples{at}{lowest}",
            "improve the flow of air, clean the cooler, or lower the limit of power: nvidia-smi -pl WATTS",
        )
    elif hottest is not None and gpu.slowdown_celsius and hottest >= gpu.slowdown_celsius - 3:
        yield _warning(
            f"GPU {gpu.index} came to {hottest:.0f} °C; it slows down at {gpu.slowdown_celsius:.0f} °C",
            "improve the flow of air before a longer run",
        )
    if (brake := share(_BRAKE)) > 0:
        yield _warning(
            f"GPU {gpu.index} was slowed down from outside in {brake:.0%} of the samples (power brake)",
            "the host's power supplies are at their limit: look at them and at the host's power budget",
        )
    elif (hardware := share(_HARDWARE)) > 0 and not hot:
        yield _warning(
            f"GPU {gpu.index} was slowed down by its hardware in {hardware:.0%} of the samples",
            "look at its heat and at its power cables",
        )
    if (capped := share(_POWER_CAP)) > 0:
        watts = f" of {gpu.limit_watts:.0f} W" if gpu.limit_watts else ""
        often = f"in {capped:.0%} of the samples, as full load does"
        message = f"GPU {gpu.index} was at its limit of power{watts} {often}"
        yield Finding(severity="info", message=message)


def _extremes(samples: list[Sample]) -> dict[str, float]:
    found = {}
    for name in ("celsius", "memory_celsius", "watts", "sm_mhz"):
        values = [value for s in samples if (value := getattr(s, name)) is not None]
        if values:
            found[f"{name}_max"], found[f"{name}_median"] = max(values), median(values)
            found[f"{name}_min"] = min(values)
    return found


def _steady(run: Stress) -> Check:
    """The speed at the end is that of the beginning, and GPUs of one kind are alike."""
    found: list[Finding] = []
    usual: dict[str, dict[int, float]] = {}
    for precision in sorted({step.precision for step in run.progress}):
        for gpu in range(len(run.devices)):
            # The first is not counted: the clocks are still rising.
            speeds = [s.tflops for s in run.progress if (s.gpu, s.precision) == (gpu, precision)][1:]
            if not speeds:
                continue
            usual.setdefault(precision, {})[gpu] = round(median(speeds), 1)
            part = len(speeds) // 4
            first, last = (median(speeds[:part]), median(speeds[-part:])) if part else (0.0, 0.0)
            if last < _FELL * first:
                message = f"GPU {gpu} ended at {last / first:.0%} of its first speed in {precision}"
                found.append(_warning(message, "see cooling, and what else runs on this GPU: nvidia-smi"))
        speeds_of = usual.get(precision, {})
        if len(set(run.devices)) == 1 and len(speeds_of) > 1:
            slow, fast = min(speeds_of.items(), key=lambda x: x[1]), max(speeds_of.values())
            if slow[1] < _FELL * fast:
                message = (
                    f"GPU {slow[0]} has {slow[1] / fast:.0%} of the speed of its neighbour in {precision}"
                )
                found.append(
                    _warning(message, "compare clocks, limits of power and what else runs: nvidia-smi -q")
                )
    if not usual:
        return Check(name="steady", status="not-run", reason="too short")
    return _check("steady", found, tflops=usual)


def _memory(run: Stress) -> Check:
    """The counters of memory errors do not move."""
    found: list[Finding] = []
    told = False
    lost = [str(gpu.index) for gpu in run.gpus if _counters(gpu.before) - _counters(gpu.after)]
    for gpu in run.gpus:
        for name, kind in (("uncorrected_volatile", _error), ("corrected_volatile", _warning)):
            before, after = gpu.before.get(name), gpu.after.get(name)
            if before is None or after is None:
                continue
            told = True
            if after > before:
                what = name.split("_", 1)[0]
                message = f"GPU {gpu.index}: {after - before} {what} memory errors during the run"
                found.append(
                    kind(message, "reset the GPU; have it replaced if they return: nvidia-smi -q -d ECC")
                )
        if gpu.after.get("remap_failed"):
            found.append(_error(f"GPU {gpu.index} has no spare rows of memory left", "have it replaced"))
        if past := gpu.before.get("uncorrected_aggregate"):
            message = f"GPU {gpu.index} has counted {past} uncorrected memory errors in its life"
            found.append(_warning(message, "watch it: nvidia-smi -q -d ECC,ROW_REMAPPER"))
    if lost and not any(finding.severity == "error" for finding in found):
        reason = f"GPU {', '.join(lost)} did not tell its counters at the end"
        return Check(name="memory_errors", status="not-run", reason=reason, findings=tuple(found))
    if not told and not found:
        return Check(name="memory_errors", status="not-run", reason=UNTOLD)
    return _check("memory_errors", found)


def _counters(told: Mapping[str, int | None]) -> set[str]:
    return {name for name in ("uncorrected_volatile", "corrected_volatile") if told.get(name) is not None}


def _xid(run: Stress) -> Check:
    """The driver reports no Xid error."""
    if not run.xid_sources and not run.xids:
        return Check(name="xid", status="not-run", reason=UNTOLD)
    found = []
    for xid in sorted({one.xid for one in run.xids}):
        where = next(f"GPU {x.gpu}" if x.gpu >= 0 else x.pci for x in run.xids if x.xid == xid)
        what, remedy = meaning(xid)
        found.append(_error(f"{where}: Xid {xid}: {what}", remedy))
    return _check("xid", found, sources=list(run.xid_sources))
