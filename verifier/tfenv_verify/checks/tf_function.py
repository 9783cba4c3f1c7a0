"""tf.function: a graph with loops and branches gives what eager execution gives, and is traced once."""

from __future__ import annotations

from typing import Any

from ..context import Context
from ..devices import take
from ..protocol import Report
from ._numeric import TOLERANCES, distance, flat, some
from .gpu_kernels import failed
from .gpu_kernels import judge as judge_distance

_CALLS = 3


def check(context: Context, report: Report) -> None:
    """A graph with a loop, a branch and a gradient gives on the GPU what eager execution gives."""
    import tensorflow as tf

    device = take(tf, context)
    tf.config.experimental.enable_tensor_float_32_execution(False)
    traced = []
    matrix, vector = some(tf, 16, 16, low=-0.5), some(tf, 16, 1)

    def compute(x: Any, steps: Any) -> Any:
        traced.append(1)
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = tf.while_loop(
                lambda n, _: n < steps,
                lambda n, y: (
                    n + 1,
                    tf.cond(
                        tf.equal(n % 2, 0),
                        lambda: tf.tanh(tf.linalg.matmul(matrix, y)),
                        lambda: y * 0.5 + x,
                    ),
                ),
                (tf.constant(0), x),
            )[1]
            loss = tf.reduce_sum(total * total)
        return tf.concat([total, tape.gradient(loss, x)], 0)

    function = tf.function(compute)
    try:
        with tf.device(device.names[0]):
            results = [flat(function(vector, tf.constant(6))) for _ in range(_CALLS)]
            where = str(function(vector, tf.constant(6)).device)
    except Exception as error:
        failed("a tf.function", error, report)
        return
    traces = len(traced)
    with tf.device("/CPU:0"):
        expected = flat(compute(vector, tf.constant(6)))
    worst = max(distance(one, expected) for one in results)
    report.facts.update(difference=worst, traces=traces)
    judge_distance("a tf.function", worst, where, report, TOLERANCES["float32"], device.kind)
    judge(traces, results, report)


def judge(traces: int, results: list[list[float]], report: Report) -> None:
    """Traced once for arguments of one signature, and the same result each time."""
    if traces != 1:
        report.warning(
            f"a tf.function was traced {traces} times for calls of one signature",
            remedy="training runs at a fraction of its speed so: compare TensorFlow with the lock",
        )
    if any(distance(one, results[0]) > TOLERANCES["float32"] for one in results):
        report.error(
            f"{len(results)} calls of one tf.function with the same arguments give different results",
            remedy="the GPU or its driver computes wrongly: run `tfenv stress`",
        )
