"""The suite on the engine: in one container, or for the suite ``workers`` in two at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from .running import Runner, in_one
from .suite import Suite
from .workers import WORKERS, in_network

if TYPE_CHECKING:
    from tfenv.container import Containers


@contextmanager
def on_engine(env: Mapping[str, str], suite: Suite) -> Iterator[tuple[Containers, Runner]]:
    """The engine, and how this suite is run there.

    Raises:
        NotReadyError: the engine does not answer.
    """
    from tfenv.container import connect

    with ExitStack() as stack:
        # Each worker has a connection of its own: one of the SDK is for one thread.
        count = WORKERS if suite == "workers" else 1
        first, *others = [stack.enter_context(connect(env)) for _ in range(count)]
        starts = [one.container for one in (first, *others)]
        yield first, in_network(starts, first.network) if others else in_one(first.container)


def expecting(gpus: int | None) -> tuple[str, ...]:
    """The suite's arguments for the number of GPUs that the user says there are."""
    return () if gpus is None else ("--expect-gpus", str(gpus))
