"""tf.data prepares the next batch while the GPU computes: both together are as fast as the slower one."""

from __future__ import annotations

import os
import time
from typing import Any, Callable

from ..context import Context
from ..devices import take
from ..protocol import Report, say

_SECONDS = 3.0  # for each measurement
_OVERLAP = 0.6  # of the slower one's rate; a loop without any overlap comes to about half
_BATCH = 32
_LAYERS = 48  # as long a step as a ResNet-50's, beside which the copy of a batch is short


def check(context: Context, report: Report) -> None:
    """tf.data feeds the GPU while it computes."""
    import tensorflow as tf

    device = take(tf, context)
    side = 224 if device.is_gpu else 32
    images = tf.cast(tf.random.stateless_uniform((_BATCH * 4, side, side, 3), (1, 2), 0, 255), tf.uint8)
    kernels = [tf.random.stateless_uniform(shape, (3, 4)) for shape in ((7, 7, 3, 32), (3, 3, 32, 32))]

    def prepare(image: Any) -> Any:
        return tf.image.random_flip_left_right(image)

    def compute(batch: Any) -> Any:
        # Bytes go to the GPU, and become numbers there: nothing hides that copy, and it is a quarter so long.
        numbers = tf.cast(batch, tf.float32) / 255.0
        hidden = tf.nn.relu(tf.nn.conv2d(numbers, kernels[0], strides=2, padding="SAME"))
        for _ in range(_LAYERS):
            hidden = tf.nn.relu(tf.nn.conv2d(hidden, kernels[1], strides=1, padding="SAME")) / 150.0
        return tf.reduce_sum(hidden)

    with tf.device("/CPU:0"):
        data = tf.data.Dataset.from_tensor_slices(images).repeat().map(prepare, tf.data.AUTOTUNE)
        data = data.batch(_BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
    function = tf.function(compute)
    batches = iter(data)
    with tf.device(device.names[0]):
        resident = tf.identity(next(batches))
        float(function(resident))
        say("input_pipeline: GPU alone")
        alone = rate(lambda: float(function(resident)))
        say("input_pipeline: tf.data alone")
        prepared = rate(lambda: next(batches))
        say("input_pipeline: together")
        together = rate(lambda: float(function(next(batches))))
    judge(prepared * _BATCH, alone * _BATCH, together * _BATCH, os.cpu_count() or 0, report)


def rate(once: Callable[[], Any]) -> float:
    """Calls per second."""
    number, began = 0, time.monotonic()
    while time.monotonic() - began < _SECONDS:
        once()
        number += 1
    return number / (time.monotonic() - began)


def judge(prepared: float, alone: float, together: float, cpus: int, report: Report) -> None:
    """Images per second that are prepared, computed, and both at once. Never an error: CPUs differ."""
    report.facts["images_per_second"] = {
        "tf.data": round(prepared, 1),
        "GPU": round(alone, 1),
        "both": round(together, 1),
    }
    told = f"tf.data {prepared:.0f}, GPU {alone:.0f}, both {together:.0f} images/s, {cpus} CPUs"
    if together < _OVERLAP * min(prepared, alone):
        report.warning(
            "the GPU waits for tf.data: preparing and computing do not overlap",
            told,
            "give the container more CPUs (docker run --cpus); look for tf.data.Options that limit threads",
        )
    elif prepared < alone:
        report.info(f"a simple pipeline of flipped images is slower than this GPU: {told}")
    else:
        report.info(f"tf.data keeps up with the GPU: {told}")
