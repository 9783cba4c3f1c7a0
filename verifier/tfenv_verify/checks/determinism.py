"""Two training runs from the same seed are equal bit for bit, with the switch for it turned on."""

from __future__ import annotations

import operator
import os
from typing import Any

from ..context import Context
from ..devices import take
from ..protocol import Report
from ._numeric import some

_STEPS = 3
SWITCH, VARIABLES, RUNS = "enable_op_determinism", ("TF_DETERMINISTIC_OPS", "TF_CUDNN_DETERMINISTIC"), 2


def check(context: Context, report: Report) -> None:
    """Two runs from the same seed give the same bits under the determinism switch."""
    # What releases before the switch have; read when TensorFlow first needs it.
    for name in VARIABLES:
        os.environ[name] = "1"
    import tensorflow as tf

    device = take(tf, context)
    switch = getattr(tf.config.experimental, SWITCH, None)
    if switch is not None:
        for name in VARIABLES:
            del os.environ[name]
        switch()
    runs = []
    for _ in range(RUNS):
        tf.random.set_seed(7)
        with tf.device(device.names[0]):
            runs.append(train(tf))
    report.facts["switch"] = SWITCH if switch is not None else "=1 ".join(VARIABLES) + "=1"
    judge(runs, switch is not None, report)


def train(tf: Any) -> list[str]:
    """The bits of every weight, in hexadecimal, after some steps of a small convolutional network."""
    image, labels = some(tf, 16, 16, 16, 4, low=-0.5), tf.constant([n % 10 for n in range(16)])
    shapes = ((3, 3, 4, 8), (8,), (512, 10), (10,))
    weights = [tf.Variable(tf.random.normal(shape, stddev=0.1)) for shape in shapes]

    def step() -> None:
        with tf.GradientTape() as tape:
            hidden = tf.nn.conv2d(image, weights[0], strides=1, padding="SAME")
            hidden = tf.nn.dropout(tf.nn.relu(tf.nn.bias_add(hidden, weights[1])), 0.1)
            hidden = tf.reshape(tf.nn.max_pool2d(hidden, 2, 2, "VALID"), (16, 512))
            logits = tf.nn.bias_add(tf.linalg.matmul(hidden, weights[2]), weights[3])
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        gradients = tape.gradient(loss, weights)
        for number, weight in enumerate(weights):
            weight.assign_sub(0.1 * gradients[number])

    function = tf.function(step)
    for _ in range(_STEPS):
        function()
    return [weight.numpy().tobytes().hex() for weight in weights]


def judge(runs: list[list[str]], switched: bool, report: Report) -> None:
    """Equal bit for bit. Before the switch existed some operations could not be: then it is a warning."""
    differing = [n for n, apart in enumerate(map(operator.ne, *runs)) if apart]
    if not differing and len({len(run) for run in runs}) == 1:
        return
    (report.error if switched else report.warning)(
        f"{len(differing)} of {len(runs[0])} weights differ between two runs from the same seed",
        f"weights {differing}",
        "TensorFlow promises the same bits here: another cuDNN than the locked one, or a GPU that computes "
        "wrongly (`tfenv stress`)"
        if switched
        else "take a newer release, which has tf.config.experimental.enable_op_determinism",
    )
