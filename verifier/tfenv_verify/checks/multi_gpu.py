"""A training step over all GPUs, with each kind of all-reduce in a process of its own: one may hang."""

from __future__ import annotations

import ctypes
import os
import resource
from typing import Any, Callable

from ..context import Context
from ..declared import Declared
from ..devices import capability
from ..parts import run_part
from ..protocol import ONE_GPU, NotRunError, Report, say
from ._numeric import distance
from ._strategy import part
from ._wheel_kernels import nccl_unserved

__all__ = ["check", "part"]

COPY, ONE, NCCL, DEFAULT = "HierarchicalCopyAllReduce", "ReductionToOneDevice", "NcclAllReduce", "the default"
SECONDS = 100.0  # for each kind, with kernels that are compiled from PTX
# For what is known not to work: long enough to see whether it does, now that the kinds before it have
# compiled what is compiled from PTX.
KNOWN_BAD_SECONDS = 30.0
LOGICAL = 2
_SHARED_MEMORY = 256 << 20  # bytes; Docker gives 64 MiB
_LOCKED_MEMORY = 64 << 20
_TOLERANCE = 1e-5

# Bus bandwidth in GB/s that a sum of 64 MB should reach on healthy links: a fraction of what NVLink and
# PCIe 3.0 x16 carry, because copies in several steps are slow on good ones too.
_EXPECTED = {"NVLink": 30.0, "PCIe": 2.0}
_WELL_BELOW = 0.75  # of the fastest: another all-reduce is worth to be named


def check(context: Context, report: Report) -> None:
    """A MirroredStrategy step over all GPUs gives the right weights on each of them."""
    count = context.on_cpu or context.gpu.count
    limits(os.statvfs("/dev/shm") if os.path.isdir("/dev/shm") else None, _locked(), count, report)
    if count < 2:
        logical(context, report)
        raise NotRunError(ONE_GPU)
    if not context.on_cpu:
        peers(count, can_access, report)
    unserved = nccl_unserved(context.declared, capability(context))
    found: dict[str, dict[str, Any]] = {}
    kinds = [COPY, ONE] if context.on_cpu else [COPY, ONE, NCCL, DEFAULT]
    for kind in kinds:
        if kind == DEFAULT and "failed" in found[NCCL]:
            continue  # it takes NCCL
        say(f"multi_gpu: {kind}")
        seconds = KNOWN_BAD_SECONDS if unserved and kind in (NCCL, DEFAULT) else SECONDS
        found[kind] = run_part(context, "multi_gpu", {"reduction": kind}, seconds)
    judge_all(found, count, unserved, context.declared, report)
    bandwidth(found, links(context), report)


def logical(context: Context, report: Report) -> None:
    """With one GPU: the same step over two logical devices of it. That proves no second GPU."""
    for kind in (COPY, ONE):
        say(f"multi_gpu: {kind} on logical devices")
        arguments = {"reduction": kind, "logical": LOGICAL}
        found = run_part(context, "multi_gpu", arguments, SECONDS)
        report.facts.setdefault("logical", {})[kind] = _without_tail(found)
        if "failed" in found:
            report.error(
                f"a step with {kind} over {LOGICAL} logical devices of one GPU {found['failed']}",
                found.get("tail", ""),
                "the last lines of its output, in the evidence, say where it was",
            )
        else:
            judge(f"{kind}, logical devices", found, LOGICAL, report)
    if report.status == "pass":
        report.info(
            f"a step over {LOGICAL} *logical* devices of one GPU is right; several GPUs are not proved by it"
        )


def judge_all(
    found: dict[str, dict[str, Any]], count: int, unserved: bool, declared: Declared, report: Report
) -> None:
    """What each kind of all-reduce gave; for one that fails, those that work.

    Args:
        unserved: whether the row's facts say that its NCCL has no code for this GPU.
    """
    report.facts["reductions"] = {kind: _without_tail(result) for kind, result in found.items()}
    works = []
    for kind, result in found.items():
        if "failed" in result:
            continue
        before = len(report.findings)
        judge(kind, result, count, report)
        if len(report.findings) == before:
            works.append(kind)
    use = next((kind for kind in (COPY, ONE, NCCL) if kind in works), "")
    remedy = (
        f"tf.distribute.MirroredStrategy(cross_device_ops=tf.distribute.{use}()) works here"
        if use
        else "no all-reduce works here: look at nvidia-smi topo -m, at the host's PCIe ACS and IOMMU "
        "settings, and run with --shm-size=1g"
    )
    for kind, result in found.items():
        if "failed" not in result:
            continue
        known = unserved and kind in (NCCL, DEFAULT)
        message = f"{kind} {'hung: it ' if result.get('hung') else ''}{result['failed']}"
        if known:
            message += (
                f"; known of this row: the NCCL {declared.compiled_nccl} in TensorFlow has machine code for "
                f"{', '.join(declared.nccl_sass)} only"
            )
        (report.warning if known and use else report.error)(message, result.get("tail", ""), remedy)
    if unserved and NCCL in works:
        report.info("NCCL works, although it is not known to have machine code for this GPU")


def judge(kind: str, found: dict[str, Any], count: int, report: Report) -> None:
    """All replicas, equal to each other and to one device; every element of the sum; no example lost."""
    links_remedy = "look at nvidia-smi topo -m and at the host's PCIe ACS and IOMMU settings"
    if found["replicas"] != count or found["devices"] != count:
        report.error(
            f"{kind}: {count} GPUs, but {found['replicas']} replicas on {found['devices']} devices",
            remedy="TensorFlow does not take every GPU: see the check gpu_visible",
        )
    weights = found["weights"]
    if len(weights) != count or any(one != weights[0] for one in weights):
        report.error(
            f"{kind}: after one step the replicas' weights differ",
            "\n".join(map(str, weights)),
            links_remedy,
        )
    for name, expected in (("float64 on the CPU", found["exact"]), ("one device", found["one_device"])):
        apart = max([distance(one, expected) for one in weights] or [float("inf")])
        if not apart <= _TOLERANCE:
            report.error(
                f"{kind}: after one step the weights differ by {apart:.3g} from those of {name} "
                f"on the same global batch (allowed {_TOLERANCE:g})",
                "\n".join(map(str, [*weights, expected])),
                links_remedy,
            )
    if len(found["wrong_elements"]) != count or any(found["wrong_elements"]):
        report.error(
            f"{kind}: of {found['elements']} elements of a sum over the GPUs, "
            f"{found['wrong_elements']} are wrong",
            "by replica",
            links_remedy,
        )
    got, expected_sum = found["sums"]
    if got != expected_sum:
        report.error(
            f"{kind}: a data set whose last batch does not divide sums to {got}, not {expected_sum}",
            remedy="examples are lost or repeated: use drop_remainder=True",
        )


def limits(shared: Any, locked: int, count: int, report: Report) -> None:
    """NCCL passes data through /dev/shm where GPUs cannot reach each other.

    Args:
        shared: what statvfs says of /dev/shm, None if it is not there. locked: bytes, -1 for no limit.
    """
    size = shared.f_frsize * shared.f_blocks if shared is not None else 0
    report.facts["shared_memory_bytes"], report.facts["locked_memory_bytes"] = size, locked
    if size < _SHARED_MEMORY:
        say_it = report.warning if count > 1 else report.info
        say_it(
            f"/dev/shm has {size >> 20} MiB: NCCL and parallel data loading run out of it",
            remedy="docker run --shm-size=1g, or --ipc=host",
        )
    if 0 <= locked < _LOCKED_MEMORY and count > 1:
        report.info(
            f"{locked >> 10} KiB of memory can be locked: NCCL needs more over InfiniBand",
            remedy="docker run --ulimit memlock=-1",
        )


def _locked() -> int:
    soft = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    return -1 if soft == resource.RLIM_INFINITY else soft


def peers(count: int, access: Callable[[int, int], "bool | None"], report: Report) -> None:
    """Which GPUs can read each other's memory. Without it all-reduce goes through the host: slow."""
    pairs = [(one, other) for one in range(count) for other in range(count) if one != other]
    told = {pair: access(*pair) for pair in pairs}
    without = [pair for pair, can in told.items() if can is False]
    report.facts["peers"] = {"pairs": len(pairs), "without": [list(pair) for pair in without]}
    if without:
        report.info(
            f"{len(without)} of {len(pairs)} pairs of GPUs cannot reach each other's memory (P2P)",
            ", ".join(f"{one} to {other}" for one, other in without),
            "look at nvidia-smi topo -p2p r on the host; all-reduce goes through the host's memory",
        )
    elif None in told.values():
        report.info("whether the GPUs can reach each other's memory (P2P) cannot be told")


def can_access(one: int, other: int, load: Callable[[str], Any] = ctypes.CDLL) -> bool | None:
    """Whether a GPU can reach another's memory; None if the driver does not tell."""
    try:
        driver = load("libcuda.so.1")
        if driver.cuInit(0) != 0:
            return None
        handles = []
        for ordinal in (one, other):
            handles.append(ctypes.c_int(0))
            if driver.cuDeviceGet(ctypes.byref(handles[-1]), ordinal) != 0:
                return None
        answer = ctypes.c_int(0)
        if driver.cuDeviceCanAccessPeer(ctypes.byref(answer), *handles) != 0:
            return None
    except (OSError, AttributeError):
        return None
    return answer.value == 1


def links(context: Context) -> str:
    """``NVLink`` if every GPU has a link that is up, ``PCIe`` if one has none, or empty."""
    devices = context.gpu.nvml.get("devices", ())
    if not devices:
        return ""
    return "NVLink" if all(device.get("nvlinks") for device in devices) else "PCIe"


def bandwidth(found: dict[str, dict[str, Any]], kind: str, report: Report) -> None:
    """How fast each all-reduce is, beside what such links should give. No verdict: it is a hint."""
    speeds = {name: one["gigabytes_per_second"] for name, one in found.items() if "failed" not in one}
    if not speeds:
        return
    told = ", ".join(f"{name} {speed:.1f} GB/s" for name, speed in speeds.items())
    fastest, least = max(speeds, key=lambda name: speeds[name]), _EXPECTED.get(kind, 0.0)
    best, default = speeds[fastest], speeds.get(DEFAULT)
    remedies = []
    if default is not None and default < _WELL_BELOW * best:
        told += f"; what MirroredStrategy takes by itself has {default / best:.0%} of the fastest"
        remedies.append(f"tf.distribute.MirroredStrategy(cross_device_ops=tf.distribute.{fastest}())")
    if best < least:
        remedies.append("look at nvidia-smi topo -m and nvidia-smi nvlink -s on the host")
    reaches = f"the fastest, {fastest}, has {'less than' if best < least else 'at least'} {least:g} GB/s"
    report.info(
        f"bus bandwidth of an all-reduce: {told}",
        f"{kind} links: {reaches}, which they should give" if kind else "",
        "; ".join(remedies),
    )


def _without_tail(result: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if key != "tail"}
