"""The suite ``workers``: the same image twice at once, each with its part of a cluster."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from tfenv.container import Ended, Spec
from tfenv.errors import NotReadyError, TfenvError
from tfenv.report import Check, Finding

from .judging import AGAIN, STATUS, why_ended
from .protocol import Outcome
from .running import Container, Job, Runner, Said, Start, commands, run_first

WORKERS = 2
PORTS = 8  # that each worker needs, from the one that is named on
_PORT = 29400
_LACKS = "run the suite `full` in this image: it says what one container lacks"
_LEAVE_SECONDS = 30  # that the others have to end once the first has
Network = Callable[[str], AbstractContextManager[str]]


def in_network(starts: Sequence[Start], network: Network) -> Runner:
    """Run each worker in a container, all in a network of their own.

    Args:
        starts: for each worker ``Containers.container``, each of a connection of its own.
        network: ``Containers.network``.
    """

    def run(job: Job) -> Said:
        names = [f"worker-{index}" for index in range(len(starts))]
        with network("workers") as where:
            specs = [replace(job.spec, network=where, aliases=(name,)) for name in names]
            return _together(starts, specs, [f"{name}:{_PORT}" for name in names], job)

    return run


def on_loopback(start: Start, free: Callable[[int], int] | None = None) -> Runner:
    """Run each worker as a process of this host's network, where there are no containers.

    Args:
        free: the first of so many ports that nobody has.
    """
    take = free or free_ports

    def run(job: Job) -> Said:
        first = take(WORKERS * PORTS)
        cluster = [f"127.0.0.1:{first + index * PORTS}" for index in range(WORKERS)]
        return _together([start] * WORKERS, [job.spec] * WORKERS, cluster, job)

    return run


def free_ports(count: int, tries: int = 200) -> int:
    """The first of ``count`` ports in a row that nobody has on the loopback.

    Raises:
        NotReadyError: there are none.
    """
    for _ in range(tries):
        # Below those that the system itself gives away.
        first = random.randrange(20000, 32000 - count)
        try:
            for port in range(first, first + count):
                with socket.socket() as one:
                    one.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first
    raise NotReadyError(f"no {count} ports in a row are free here", remedy="see who has them: `ss -tlnp`")


def _together(starts: Sequence[Start], specs: Sequence[Spec], cluster: Sequence[str], job: Job) -> Said:
    """Run all workers at once, the first one in this thread; nothing of them stays."""
    running = _Running()
    said: dict[int, Said] = {}

    def work(index: int, on_check: Callable[[Check], None]) -> None:
        more = (*job.more, "--cluster", ",".join(cluster), "--worker", str(index))
        ways = commands(job.limit, job.suite, more)
        said[index] = run_first(running.watched(starts[index]), specs[index], ways, job.limit, on_check)

    def other(index: int) -> None:
        try:
            work(index, lambda _check: None)
        except (TfenvError, OSError) as error:
            said[index] = Outcome(), Ended(127), str(error)

    threads = [threading.Thread(target=other, args=(index,), daemon=True) for index in range(1, len(starts))]
    for thread in threads:
        thread.start()
    try:
        work(0, job.on_check)
        for thread in threads:
            thread.join(_LEAVE_SECONDS)
    finally:
        running.end()
        for thread in threads:
            thread.join(_LEAVE_SECONDS)
    lost = (Outcome(), Ended(137), "it did not end")
    return joined(said[0], [said.get(index, lost) for index in range(1, len(starts))], job.limit)


class _Running:
    """What is running, so that all of it can be ended."""

    def __init__(self) -> None:
        self._lock, self._ended = threading.Lock(), False
        self._containers: list[Container] = []

    def watched(self, start: Start) -> Start:
        """``start``, of what is ended when all is."""

        @contextmanager
        def begin(spec: Spec) -> Iterator[Container]:
            with self._lock:
                over = self._ended
            if over:
                raise NotReadyError("the other worker has ended", remedy="type the command again")
            with start(spec) as one:
                with self._lock:
                    self._containers.append(one)
                    over = self._ended
                if over:
                    one.kill()
                yield one

        return begin

    def end(self) -> None:
        """End all that runs, and what is being started."""
        with self._lock:
            self._ended = True
            left = list(self._containers)
        for one in left:
            one.kill()


def joined(first: Said, others: Sequence[Said], limit: int) -> Said:
    """What the first worker said, with what it cannot know of the others.

    The first one judges what all of them computed. Besides, each of the others has to end as it does.
    """
    outcome, ended, stderr = first
    added: list[Check] = []
    for index, (other, its_end, its_stderr) in enumerate(others, start=1):
        failed = [check for check in other.checks if check.status == "fail"]
        if other.verdict is None:
            remedy = {} if its_end else {"remedy": AGAIN}
            added.append(_broken(index, why_ended(its_end, limit), its_stderr, other, **remedy))
        elif other.verdict != outcome.verdict and outcome.verdict in STATUS and outcome.verdict != "fail":
            added += [replace(check, name=f"{check.name}, worker {index}") for check in failed]
            why = f"it says {other.verdict}, worker 0 says {outcome.verdict}"
            added += [] if failed else [_broken(index, why, its_stderr, other)]
        elif its_end and other.verdict in STATUS and its_end.status != STATUS[other.verdict]:
            why = f"it said {other.verdict} but ended with exit status {its_end.status}"
            added.append(_broken(index, why, its_stderr, other))
    if not added:
        return first
    verdict = "fail" if outcome.verdict is not None else None
    return replace(outcome, checks=[*outcome.checks, *added], verdict=verdict), ended, stderr


def _broken(index: int, why: str, stderr: str, outcome: Outcome, remedy: str = _LACKS) -> Check:
    finding = Finding(
        severity="error",
        message=f"worker {index}: {why}",
        evidence="\n".join([*outcome.strays[-10:], *stderr.splitlines()[-20:]]),
        remedy=remedy,
    )
    return Check(name=f"worker {index}", status="fail", findings=(finding,))
