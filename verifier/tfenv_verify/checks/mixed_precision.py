"""One training step in mixed precision: float16 computation, float32 weights, scaled loss."""

from __future__ import annotations

from typing import Any

from ..context import Context
from ..protocol import Report
from ._numeric import distance, flat, grow_memory, some


def check(_context: Context, report: Report) -> None:
    """One step under mixed_float16 with LossScaleOptimizer changes the weights, finitely."""
    import tensorflow as tf

    grow_memory(tf)
    keras = tf.keras
    keras.mixed_precision.set_global_policy("mixed_float16")
    model = keras.Sequential(
        [
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dense(1, dtype="float32"),
        ]
    )
    optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1))
    version = str(getattr(keras, "__version__", "2"))  # Keras 2 within TensorFlow tells none
    # Keras 3 compiles with XLA on its own where it can; that is the check xla's.
    options: dict[str, Any] = {"jit_compile": False} if version >= "3" else {}
    model.compile(optimizer=optimizer, loss="mse", **options)
    inputs, targets = some(tf, 64, 16), some(tf, 64, 1)
    computed = str(model(inputs).dtype), str(model.layers[0](inputs).dtype)
    before = flat(tf.convert_to_tensor(model.layers[0].kernel))
    loss = float(model.train_on_batch(inputs, targets))
    after = flat(tf.convert_to_tensor(model.layers[0].kernel))
    weights = str(tf.convert_to_tensor(model.layers[0].kernel).dtype)
    report.facts.update(loss=loss, change=distance(after, before))
    judge(computed[1], weights, loss, distance(after, before), report)


def judge(computed: str, weights: str, loss: float, change: float, report: Report) -> None:
    """float16 inside, float32 weights, a finite loss, and weights that moved a finite distance."""
    if "float16" not in computed:
        report.error(f"a layer under mixed_float16 computes in {computed}")
    if "float32" not in weights:
        report.error(f"the weights under mixed_float16 are {weights}")
    if not abs(loss) < float("inf"):
        report.error(f"the loss of the first step is {loss}")
    if not 0.0 < change < float("inf"):
        report.error(f"the step moved the weights by {change}")
