"""A convolution, forward and backward, through cuDNN."""

from __future__ import annotations

from typing import Any

from ..context import Context
from ..protocol import Report
from ._loaded import compare_loaded
from ._numeric import grow_memory, on_both, some
from .gpu_kernels import judge


def check(context: Context, report: Report) -> None:
    """A convolution and its gradient give on the GPU what they give on the CPU."""
    import tensorflow as tf

    grow_memory(tf)
    image, kernel = some(tf, 2, 16, 16, 8), some(tf, 3, 3, 8, 8)

    def forward() -> Any:
        return tf.nn.conv2d(image, kernel, strides=1, padding="SAME")

    def backward() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(kernel)
            loss = tf.reduce_mean(tf.square(forward()))
        return tape.gradient(loss, kernel)

    report.facts["first_call_seconds"] = {}
    for name, compute in (("convolution", forward), ("convolution gradient", backward)):
        difference, seconds, device = on_both(tf, compute)
        report.facts["first_call_seconds"][name] = seconds
        judge(name, difference, device, report)
    if not any("libcudnn" in path for path in compare_loaded(context.declared, report)):
        report.error("a convolution ran on the GPU, but no cuDNN is in the process")
