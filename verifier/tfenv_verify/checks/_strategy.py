"""One training step over several devices with one kind of all-reduce: what multi_gpu runs in children."""

from __future__ import annotations

import os
import time
from typing import Any, Callable, MutableMapping

from ..context import Context
from ..devices import take
from ._numeric import flat, some

FEATURES, EXAMPLES, RATE = 8, 4, 0.1  # EXAMPLES of each replica
_PERIOD = 1009  # prime; the sums stay exact in float32
_REPEATS = 5

#: What a MirroredStrategy is given by each name; the default takes NCCL where there are GPUs.
REDUCTIONS: dict[str, Callable[[Any], Any]] = {
    "HierarchicalCopyAllReduce": lambda tf: tf.distribute.HierarchicalCopyAllReduce(),
    "ReductionToOneDevice": lambda tf: tf.distribute.ReductionToOneDevice(),
    "NcclAllReduce": lambda tf: tf.distribute.NcclAllReduce(),
    "the default": lambda _tf: None,
}


def part(context: Context, arguments: dict[str, Any]) -> dict[str, Any]:
    """Measure with ``arguments["reduction"]``; ``logical`` splits the first GPU into so many devices.

    ``weights`` are those of each replica after a step, ``one_device`` those of one device after the same
    one and ``exact`` in float64; ``wrong_elements`` those of an all-reduce; ``sums`` of a data set whose
    last batch does not divide, and what it should be.
    """
    nccl_speaks(os.environ)
    import tensorflow as tf

    device = take(tf, context, logical=int(arguments.get("logical", 0)))
    tf.config.experimental.enable_tensor_float_32_execution(False)
    strategy = tf.distribute.MirroredStrategy(
        list(device.names), cross_device_ops=REDUCTIONS[arguments["reduction"]](tf)
    )
    count = int(strategy.num_replicas_in_sync)
    elements = (1 << 24) if device.is_gpu and not device.logical else (1 << 16)
    wrong, seconds = all_reduce(tf, strategy, elements)
    return {
        "devices": len(device.names),
        "replicas": count,
        "weights": step(tf, strategy, count),
        "one_device": one_device(tf, count, device.names[0], "float32"),
        "exact": one_device(tf, count, "/CPU:0", "float64"),
        "wrong_elements": wrong,
        "elements": elements,
        "gigabytes_per_second": round(4.0 * elements * 2.0 * (count - 1) / count / seconds / 1e9, 2),
        "sums": list(uneven(tf, strategy, count)),
    }


def nccl_speaks(environ: MutableMapping[str, str]) -> None:
    """Let NCCL say what is wrong, before it is loaded, and so that it is not lost when it is killed.

    Of itself it says nothing, and on stdout, which is not flushed by a kill.
    """
    environ.setdefault("NCCL_DEBUG", "WARN")
    environ.setdefault("NCCL_DEBUG_FILE", "/dev/stderr")


def _batch(tf: Any, count: int, dtype: str) -> tuple[Any, Any, Any]:
    """The global batch (inputs and targets), and the first weights."""
    inputs = some(tf, EXAMPLES * count, FEATURES, dtype=dtype, low=-0.5)
    targets = some(tf, EXAMPLES * count, 1, dtype=dtype)
    return inputs, targets, some(tf, FEATURES, 1, dtype=dtype, low=-0.5)


def step(tf: Any, strategy: Any, count: int) -> list[list[float]]:
    """The weights of each replica after a step of gradient descent on its part of the global batch."""
    inputs, targets, first = _batch(tf, count, "float32")
    with strategy.scope():
        weights = tf.Variable(first, aggregation=tf.VariableAggregation.MEAN)

    def train() -> Any:
        def replica() -> Any:
            context = tf.distribute.get_replica_context()
            begin = context.replica_id_in_sync_group * EXAMPLES
            x = tf.slice(inputs, [begin, 0], [EXAMPLES, FEATURES])
            y = tf.slice(targets, [begin, 0], [EXAMPLES, 1])
            with tf.GradientTape() as tape:
                error = tf.linalg.matmul(x, weights) - y
                loss = tf.reduce_sum(error * error) / (EXAMPLES * count)
            gradient = tape.gradient(loss, weights)
            weights.assign_sub(RATE * context.all_reduce("SUM", gradient))
            return tf.identity(weights)

        return strategy.run(replica)

    return [flat(value) for value in strategy.experimental_local_results(tf.function(train)())]


def one_device(tf: Any, count: int, name: str, dtype: str) -> list[float]:
    """The weights after the same step of one device on the whole global batch."""
    inputs, targets, first = _batch(tf, count, dtype)
    with tf.device(name):
        x, y, weights = tf.identity(inputs), tf.identity(targets), tf.identity(first)
        with tf.GradientTape() as tape:
            tape.watch(weights)
            error = tf.linalg.matmul(x, weights) - y
            loss = tf.reduce_sum(error * error) / (EXAMPLES * count)
        return flat(weights - RATE * tape.gradient(loss, weights))


def all_reduce(tf: Any, strategy: Any, elements: int) -> tuple[list[float], float]:
    """By replica how many elements of a sum over the replicas are wrong; seconds of the fastest sum.

    Element n of replica r is (n mod 1009) * (r + 1): another of each replica, and the sum is exact.
    """
    count = strategy.num_replicas_in_sync
    factor = sum(range(1, count + 1))

    def own() -> Any:
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        numbers = tf.cast(tf.range(elements) % _PERIOD, tf.float32)
        return numbers * tf.cast(replica + 1, tf.float32)

    def total(values: Any) -> Any:
        # NCCL takes only what has a device, and an argument of a graph has none.
        return tf.distribute.get_replica_context().all_reduce("SUM", tf.identity(values))

    def differing(sums: Any) -> Any:
        expected = tf.cast(tf.range(elements) % _PERIOD, tf.float32) * float(factor)
        return tf.reduce_sum(tf.cast(tf.not_equal(sums, expected), tf.float32))

    local = strategy.experimental_local_results
    values = tf.function(lambda: strategy.run(own))()
    summed = tf.function(lambda given: strategy.run(total, args=(given,)))
    last = tf.function(lambda given: strategy.run(lambda one: one[-1], args=(given,)))

    def wait(sums: Any) -> None:
        for one in local(last(sums)):
            one.numpy()

    sums = summed(values)
    wait(sums)
    wrong = [float(n.numpy()) for n in local(tf.function(lambda g: strategy.run(differing, args=(g,)))(sums))]
    best = float("inf")
    for _ in range(_REPEATS):
        began = time.monotonic()
        wait(summed(values))
        best = min(best, time.monotonic() - began)
    return wrong, best


def uneven(tf: Any, strategy: Any, count: int) -> tuple[float, float]:
    """The sum of a data set over all replicas where the last batch does not divide, and the right one."""
    number = EXAMPLES * count + EXAMPLES * count // 2 + 1
    data = tf.data.Dataset.range(1, number + 1).map(lambda n: tf.cast(n, tf.float32)).batch(EXAMPLES * count)
    summed = tf.function(lambda batch: strategy.run(tf.reduce_sum, args=(batch,)))
    total = 0.0
    for batch in strategy.experimental_distribute_dataset(data):
        total += sum(float(one.numpy()) for one in strategy.experimental_local_results(summed(batch)))
    return total, float(number * (number + 1) // 2)
