"""XLA compiles for the GPU and gives what eager execution gives."""

from __future__ import annotations

import time
from typing import Any

from ..context import Context
from ..protocol import Report
from ._numeric import distance, flat, grow_memory, some
from .gpu_kernels import judge


def check(_context: Context, report: Report) -> None:
    """A jit_compile function gives on the GPU what eager execution gives on the CPU."""
    import tensorflow as tf

    grow_memory(tf)
    square = some(tf, 64, 64)

    def compute(x: Any) -> Any:
        return tf.nn.relu(tf.linalg.matmul(x, x) - 16.0) * 2.0 + tf.math.sin(x)

    compiled = tf.function(compute, jit_compile=True)
    started = time.monotonic()
    with tf.device("/GPU:0"):
        got = compiled(square)
        values = flat(got)
    report.facts["compile_seconds"] = round(time.monotonic() - started, 2)
    with tf.device("/CPU:0"):
        expected = flat(compute(square))
    judge("an XLA function", distance(values, expected), str(got.device), report)
