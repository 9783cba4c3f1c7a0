"""A model that was saved and loaded again gives the same: as a SavedModel, and by Keras."""

from __future__ import annotations

import os
import tempfile
from typing import Any, Callable

from ..context import Context
from ..devices import take
from ..places import scratch
from ..protocol import Report, say
from ._numeric import TOLERANCES, distance, flat, some
from .gpu_kernels import failed


def check(context: Context, report: Report) -> None:
    """What was saved and loaded again gives the same on the GPU."""
    import tensorflow as tf

    device = take(tf, context)
    tf.config.experimental.enable_tensor_float_32_execution(False)
    with tempfile.TemporaryDirectory(dir=scratch(), prefix="tfenv-saved-") as folder:
        for name, function in (("a SavedModel", saved), ("a Keras model", kept)):
            say(f"saved_model: {name}")
            try:
                before, after, where = function(tf, folder)  # where TensorFlow puts it: on the GPU
            except Exception as error:
                failed(f"saving and loading {name}", error, report)
                continue
            judge(name, before, after, where, report, device.kind)


def saved(tf: Any, folder: str) -> tuple[list[float], list[float], str]:
    """A tf.Module with a signature: its result before and after, and where it was computed."""
    path, given = os.path.join(folder, "saved"), some(tf, 4, 8, low=-0.5)

    class Model(tf.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.weights = tf.Variable(some(tf, 8, 3, low=-0.5))

        @tf.function(input_signature=[tf.TensorSpec((None, 8), tf.float32)])  # type: ignore[untyped-decorator]
        def __call__(self, x: Any) -> Any:
            return tf.nn.relu(tf.linalg.matmul(x, self.weights))

    model = Model()
    tf.saved_model.save(model, path)
    result = tf.saved_model.load(path)(given)
    return flat(model(given)), flat(result), str(result.device)


def kept(tf: Any, folder: str) -> tuple[list[float], list[float], str]:
    """A Keras model in the format of this Keras."""
    keras, given = tf.keras, some(tf, 2, 8, 8, 3, low=-0.5)
    three = str(getattr(keras, "__version__", "2")) >= "3"
    path = os.path.join(folder, "model.keras" if three else "model")
    model = keras.Sequential(
        [
            keras.layers.Conv2D(4, 3, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(2),
        ]
    )
    expected = model(given)
    model.save(path)
    load: Callable[[str], Any] = keras.models.load_model
    result = load(path)(given)
    return flat(expected), flat(result), str(result.device)


def judge(
    name: str, before: list[float], after: list[float], where: str, report: Report, kind: str = "GPU"
) -> None:
    """The same numbers, computed on the device."""
    apart = distance(after, before)
    report.facts[name] = apart
    if kind not in where:
        report.error(
            f"{name} that was loaded computes on {where!r}, not on a {kind}",
            remedy="it was saved with a device in it, or the operation has no kernel for the GPU",
        )
    if not apart <= TOLERANCES["float32"]:
        report.error(
            f"{name} gives other results after it was saved and loaded: {apart:.3g} apart",
            remedy="compare TensorFlow and Keras with the lock",
        )
