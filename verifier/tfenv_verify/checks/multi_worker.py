"""MultiWorkerMirroredStrategy over containers, with each kind of all-reduce in a process of its own."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any, Callable, Sequence

from .. import meeting
from ..context import Context
from ..devices import capability
from ..parts import run_part
from ..protocol import Report, say
from ._numeric import distance
from ._wheel_kernels import nccl_unserved
from ._workers import part

__all__ = ["check", "part"]

RING, NCCL, AUTO = "RING", "NCCL", "AUTO"
MEET_SECONDS = 180.0  # containers start, and their drivers, one after the other
FIRST_SECONDS = 240.0  # for the first kind, which compiles kernels from PTX where no cache has them yet
SECONDS = 100.0  # for each other
KNOWN_BAD_SECONDS = 45.0  # for what is known not to work: long enough to see whether it does
GRACE_SECONDS = 10.0  # that a worker goes on after another has failed
ANSWER_SECONDS = 30.0  # more than its limit that a worker has to say that it was over
MOST_SECONDS = MEET_SECONDS + FIRST_SECONDS + 2 * SECONDS + 3 * ANSWER_SECONDS + 30.0
PORTS = 8  # that each worker needs, from the one that is named on
_TOLERANCE = 1e-5
_WELL_BELOW = 0.75  # of the fastest: another kind is worth to be named
_LOOK = "look at the last lines of each worker, in the evidence, and at the network between them"


def check(context: Context, report: Report) -> None:
    """A MultiWorkerMirroredStrategy step over two containers gives the right weights in each of them."""
    about = myself(context)
    if context.worker != 0:
        follow(context, about, report)
        return
    try:
        lead(context, about, report)
    except meeting.BusyError as error:
        report.error(str(error), remedy=f"name addresses of this host, with {PORTS} free ports from there on")


def myself(context: Context) -> dict[str, Any]:
    """What a worker says of itself: the GPU that it takes."""
    devices = context.gpu.devices
    mine = devices[context.worker % len(devices)] if devices and not context.on_cpu else {}
    return {"gpu": str(mine.get("name", "")), "uuid": str(mine.get("uuid", ""))}


def lead(context: Context, about: dict[str, Any], report: Report) -> None:
    """As worker 0: say to the others what to run, run it too, and judge what all of them found."""
    cluster = context.cluster
    say(f"multi_worker: waits for {len(cluster) - 1} more at {cluster[0]}")
    with meeting.hold(cluster, MEET_SECONDS) as came:
        missing = [name(cluster, index) for index in range(1, len(cluster)) if index not in came]
        if missing:
            report.error(
                f"{' and '.join(missing)} did not come within {MEET_SECONDS:.0f} s",
                remedy="look at that worker's own output; the workers need a network between them, and "
                f"{PORTS} ports each, from the one that is named on",
            )
        else:
            told = [about, *(came[index][1] for index in sorted(came))]
            shared = shares_gpu(told, context)
            report.facts["workers"] = [
                {"address": cluster[index], "gpu": one["gpu"]} for index, one in enumerate(told)
            ]
            report.facts["shared"] = shared
            unserved = nccl_unserved(context.declared, capability(context))
            found = _rounds(context, kinds_of(context, shared), unserved, came)
            judge_all(found, cluster, unserved, context, report)
            if shared and report.status == "pass":
                report.info(
                    "the workers *shared* one GPU: that they reach each other is proved, "
                    "NCCL between two GPUs is not",
                    told[0]["gpu"],
                )
        end = {"status": report.status, "findings": report.findings}
        for line, _ in came.values():
            with suppress(meeting.LostError):  # it is in the findings already
                line.send(end)


def follow(context: Context, about: dict[str, Any], report: Report) -> None:
    """As another worker: run what worker 0 says, and report what it has found."""
    first = name(context.cluster, 0)
    try:
        with meeting.join(context.cluster, context.worker, about, MEET_SECONDS) as line:
            while True:
                said = line.receive(MEET_SECONDS + FIRST_SECONDS + ANSWER_SECONDS)
                if "stop" in said:
                    continue  # it came too late to be needed
                if "run" not in said:
                    break
                say(f"multi_worker: {said['run']['implementation']}")
                line.send(_run(context, said["run"], Watch({0: line}, context.cluster)))
    except meeting.LostError as error:
        report.error(f"{first} {error}", remedy="look at that worker's own output")
        return
    report.findings += [dict(one) for one in said.get("findings", ())]
    if said.get("status") not in ("pass", "fail"):
        report.error(f"{first} ended without a result", str(said)[:500])


def shares_gpu(told: Sequence[dict[str, Any]], context: Context) -> bool:
    """Whether two workers have the same GPU. Where the driver does not tell, one GPU is one for both."""
    if context.on_cpu:
        return False
    known = [one["uuid"] for one in told]
    return len(set(known)) < len(known) if all(known) else context.gpu.count < len(known)


def kinds_of(context: Context, shared: bool) -> list[str]:
    """What to try. NCCL refuses two workers on one GPU, and there is none for a CPU."""
    return [RING] if shared or context.on_cpu else [RING, NCCL, AUTO]


def name(cluster: Sequence[str], index: int) -> str:
    """How a worker is called in findings."""
    return f"worker {index} ({cluster[index]})"


def ports(cluster: Sequence[str], number: int) -> dict[str, list[str]]:
    """The addresses of round ``number``: TensorFlow's servers, and where those that are done wait.

    Each round has its own: what a server of a round that hung still holds is in nobody's way.
    """
    split = [meeting.split(address) for address in cluster]
    return {
        "cluster": [f"{host}:{port + 1 + 2 * number}" for host, port in split],
        "done": [f"{host}:{port + 2 + 2 * number}" for host, port in split],
    }


class Watch:
    """Says why this worker should not go on, some seconds after another has failed.

    TensorFlow waits for ever for a worker that has died. The seconds are for it to tell it by itself.
    """

    def __init__(
        self, lines: dict[int, meeting.Line], cluster: Sequence[str], clock: Callable[[], float] | None = None
    ) -> None:
        self._lines, self._cluster, self._clock = lines, cluster, clock or time.monotonic
        self._why, self._since = "", 0.0

    def __call__(self) -> str:
        """Why, or empty."""
        if not self._why:
            self._why, self._since = self._look(), self._clock()
        return self._why if self._why and self._clock() - self._since >= GRACE_SECONDS else ""

    def _look(self) -> str:
        for index, line in self._lines.items():
            try:
                said = line.heard() or {}
            except meeting.LostError as error:
                return f"{name(self._cluster, index)} {error}"
            if "stop" in said or "failed" in said:
                return f"{name(self._cluster, index)} had failed"
        return ""


def _run(context: Context, task: dict[str, Any], watch: Watch) -> dict[str, Any]:
    arguments, seconds = dict(task, worker=context.worker), float(task["seconds"])
    return run_part(context, "multi_worker", arguments, seconds, watch)


def _rounds(
    context: Context, kinds: Sequence[str], unserved: bool, came: dict[int, tuple[meeting.Line, Any]]
) -> dict[str, list[dict[str, Any]]]:
    """By kind, what each worker found. After a worker has gone no more is tried."""
    found: dict[str, list[dict[str, Any]]] = {}
    for number, kind in enumerate(kinds):
        if kind == AUTO and any("failed" in one for one in found[NCCL]):
            continue  # it may take NCCL
        seconds = KNOWN_BAD_SECONDS if unserved and kind != RING else SECONDS if number else FIRST_SECONDS
        task = dict(ports(context.cluster, number), implementation=kind, seconds=seconds)
        say(f"multi_worker: {kind}")
        lost: dict[int, dict[str, Any]] = {}
        for index, (line, _) in came.items():
            try:
                line.send({"run": task})
            except meeting.LostError as error:
                lost[index] = {"failed": str(error)}
        watch = Watch({index: line for index, (line, _) in came.items()}, context.cluster)
        answers = {0: {"failed": "was not started"} if lost else _run(context, task, watch), **lost}
        if "failed" in answers[0]:
            for line, _ in came.values():
                with suppress(meeting.LostError):
                    line.send({"stop": True})
        for index, (line, _) in came.items():
            if index not in lost:
                try:
                    answers[index] = line.receive(seconds + ANSWER_SECONDS)
                except meeting.LostError as error:
                    answers[index] = lost[index] = {"failed": str(error)}
        found[kind] = [answers[index] for index in sorted(answers)]
        if lost:
            break
    return found


def judge_all(
    found: dict[str, list[dict[str, Any]]],
    cluster: Sequence[str],
    unserved: bool,
    context: Context,
    report: Report,
) -> None:
    """What each kind of all-reduce gave; for one that fails, who failed, and the kinds that work.

    Args:
        found: by kind, what each worker answered. unserved: whether the row's facts say that its NCCL has
            no code for this GPU.
    """
    report.facts["implementations"] = {
        kind: [{key: value for key, value in one.items() if key != "tail"} for one in answers]
        for kind, answers in found.items()
    }
    works, declared = [], context.declared
    for kind, answers in found.items():
        if not any("failed" in one for one in answers):
            before = len(report.findings)
            judge(kind, answers, cluster, report, "CPU" if context.on_cpu else "GPU")
            if len(report.findings) == before:
                works.append(kind)
    use = next((kind for kind in (RING, NCCL, AUTO) if kind in works), "")
    remedy = f"{_taking(use)} works here" if use else _LOOK
    for kind, answers in found.items():
        failed = dict(
            # One that hung, or was ended, waited for another most of the time: it is named after it.
            sorted(
                ((index, one) for index, one in enumerate(answers) if "failed" in one),
                key=lambda item: ("hung" in item[1] or "stopped" in item[1], item[0]),
            )
        )
        if not failed:
            continue
        message = f"{kind}: {'; '.join(_how(cluster, index, one) for index, one in failed.items())}"
        known = unserved and kind != RING
        if known:
            message += (
                f"; known of this row: the NCCL {declared.compiled_nccl} in TensorFlow has machine code for "
                f"{', '.join(declared.nccl_sass)} only"
            )
        evidence = "\n".join(
            f"{name(cluster, index)}:\n{one['tail']}" for index, one in failed.items() if one.get("tail")
        )
        (report.warning if known and use else report.error)(message, evidence, remedy)
    speeds = {kind: min(one["gigabytes_per_second"] for one in found[kind]) for kind in works}
    if speeds:
        told = ", ".join(f"{kind} {speed:.2f} GB/s" for kind, speed in speeds.items())
        fastest = max(speeds, key=lambda kind: speeds[kind])
        slow = speeds.get(AUTO, speeds[fastest]) < _WELL_BELOW * speeds[fastest]
        report.info(
            f"bus bandwidth of an all-reduce over the workers: {told}",
            remedy=_taking(fastest) if slow else "",
        )


def _taking(kind: str) -> str:
    """What to write so that it is taken."""
    return (
        "tf.distribute.MultiWorkerMirroredStrategy(communication_options=tf.distribute.experimental."
        "CommunicationOptions(implementation=tf.distribute.experimental.CommunicationImplementation."
        f"{kind}))"
    )


def _how(cluster: Sequence[str], index: int, answer: dict[str, Any]) -> str:
    return f"{name(cluster, index)} {'hung: it ' if answer.get('hung') else ''}{answer['failed']}"


def judge(
    kind: str,
    answers: Sequence[dict[str, Any]],
    cluster: Sequence[str],
    report: Report,
    device: str = "GPU",
) -> None:
    """All workers, equal to each other and to one device; every element of the sum."""
    count = len(cluster)
    if any(one["replicas"] != count for one in answers):
        report.error(
            f"{kind}: {count} workers, but {[one['replicas'] for one in answers]} replicas in all",
            "by worker",
            "TensorFlow does not take the GPU of each worker: see the check gpu_visible",
        )
    for index, one in enumerate(answers):
        if f"device:{device}" not in one["device"]:
            report.error(
                f"{kind}: {name(cluster, index)} computes on {one['device']!r}, not on a {device}",
                remedy="TensorFlow does not take the GPU of that worker: see the check gpu_visible",
            )
    weights = [one["weights"] for one in answers]
    if any(one != weights[0] for one in weights):
        report.error(
            f"{kind}: after one step the weights of {_unlike(weights, cluster)} differ from those of "
            f"{name(cluster, 0)}",
            "\n".join(map(str, weights)),
            _LOOK,
        )
    for index, one in enumerate(answers):
        for what, expected in (("float64 on the CPU", one["exact"]), ("one device", one["one_device"])):
            apart = distance(one["weights"], expected)
            if not apart <= _TOLERANCE:
                report.error(
                    f"{kind}: after one step the weights of {name(cluster, index)} differ by {apart:.3g} "
                    f"from those of {what} on the same global batch (allowed {_TOLERANCE:g})",
                    "\n".join(map(str, [one["weights"], expected])),
                    _LOOK,
                )
        if one["wrong_elements"] != 0:
            report.error(
                f"{kind}: of {one['elements']} elements of a sum over the workers, {one['wrong_elements']:g} "
                f"are wrong on {name(cluster, index)}",
                remedy=_LOOK,
            )


def _unlike(weights: Sequence[list[float]], cluster: Sequence[str]) -> str:
    return " and ".join(name(cluster, index) for index, one in enumerate(weights) if one != weights[0])
