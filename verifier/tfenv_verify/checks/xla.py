"""XLA compiles for the GPU and gives what eager execution gives."""

from __future__ import annotations

import time
from typing import Any

from ..context import Context
from ..devices import compiled, take
from ..protocol import Report
from ._loaded import compare_loaded
from ._numeric import distance, flat, some
from .gpu_kernels import failed, judge


def check(context: Context, report: Report) -> None:
    """Functions compiled by XLA give on the GPU what eager execution gives on the CPU."""
    import tensorflow as tf

    device = take(tf, context)
    square, image, kernel = some(tf, 64, 64), some(tf, 2, 8, 8, 4, low=-0.5), some(tf, 3, 3, 4, 4, low=-0.5)

    def fused(x: Any) -> Any:
        return tf.nn.relu(tf.linalg.matmul(x, x) - 16.0) * 2.0 + tf.math.sin(x)

    def gradient(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.math.square(fused(x)))
        return tape.gradient(loss, x)

    def convolution(x: Any) -> Any:
        return tf.nn.relu(tf.nn.conv2d(x, kernel, strides=1, padding="SAME"))

    report.facts["compile_seconds"] = {}
    for name, function, given in (
        ("an XLA function", fused, square),
        ("an XLA gradient", gradient, square),
        ("an XLA convolution", convolution, image),
    ):
        try:
            started = time.monotonic()
            with tf.device(device.names[0]):
                got = compiled(tf, function)(given)
                values = flat(got)
        except Exception as error:
            failed(name, error, report)
            continue
        report.facts["compile_seconds"][name] = round(time.monotonic() - started, 2)
        with tf.device("/CPU:0"):
            expected = flat(function(given))
        judge(name, distance(values, expected), str(got.device), report, kind=device.kind)
    if device.is_gpu:
        compare_loaded(context.declared, report)  # nvrtc and nvJitLink are loaded only now
