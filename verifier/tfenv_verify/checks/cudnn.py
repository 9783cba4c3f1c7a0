"""What cuDNN computes, in both layouts and in three precisions, held to float64 on the CPU."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Callable, Iterator

from ..context import Context
from ..cuda_libraries import known
from ..declared import Declared
from ..devices import Devices, take
from ..places import build_info
from ..protocol import Report, say
from ..versions import numbers, text
from ._loaded import compare_loaded
from ._numeric import TOLERANCES, distance, flat, some
from .gpu_kernels import failed
from .libraries import judge_cudnn

_EPSILON = 1e-3
_STEPS, _UNITS = 6, 8


def check(context: Context, report: Report) -> None:
    """Convolution, pooling, batch norm and LSTM give on the GPU what float64 gives on the CPU."""
    import tensorflow as tf

    device = take(tf, context)
    report.facts["differences"] = {}
    for precision, layout in cases(device):
        say(f"cudnn: {precision} {layout}")
        exact = precision == "float32"
        tf.config.experimental.enable_tensor_float_32_execution(not exact)
        dtype = "float32" if precision == "tf32" else precision
        for name, compute in operations(tf, layout, precision):
            one(tf, f"{name}, {layout}", precision, dtype, compute, device, report)
    tf.config.experimental.enable_tensor_float_32_execution(True)  # the default again
    for precision in ("tf32", "float16") if device.is_gpu else ("tf32",):
        say(f"cudnn: LSTM {precision}")
        dtype = "float32" if precision == "tf32" else precision
        one(tf, "LSTM", precision, dtype, lstm(tf, dtype), device, report)
    if device.is_gpu:
        loaded(context.declared, compare_loaded(context.declared, report), report)


def cases(device: Devices) -> list[tuple[str, str]]:
    """Precisions and layouts; a CPU has no kernels for NCHW."""
    layouts = ("NHWC", "NCHW") if device.is_gpu else ("NHWC",)
    return [(precision, layout) for precision in ("float32", "tf32", "float16") for layout in layouts]


def one(
    tf: Any,
    name: str,
    precision: str,
    dtype: str,
    compute: Callable[[str], list[Any]],
    device: Devices,
    report: Report,
) -> None:
    """Compute it on the device and in float64 on the CPU; judge the results in turn."""
    try:
        with tf.device(device.names[0]):
            got = compute(dtype)
            values = [flat(tf.cast(tensor, tf.float64)) for tensor in got]
    except Exception as error:
        failed(f"{name} in {precision}", error, report)
        return
    with tf.device("/CPU:0"):
        expected = [flat(tensor) for tensor in compute("float64")]
    worst = max(map(distance, values, expected))
    report.facts["differences"][f"{name}, {precision}"] = worst
    judge(name, precision, worst, [str(tensor.device) for tensor in got], report, device.kind)


def judge(
    name: str, precision: str, worst: float, where: list[str], report: Report, kind: str = "GPU"
) -> None:
    """On the device, and as close to float64 as the precision allows."""
    if not all(kind in place for place in where):
        report.error(
            f"{name} in {precision} was computed on {' and '.join(sorted(set(where)))}, not on a {kind}",
            remedy="TensorFlow did not take cuDNN: the check libraries says which part of it is missing",
        )
    allowed = TOLERANCES[precision]
    if not worst <= allowed:
        report.error(
            f"{name} in {precision} differs from float64 on the CPU by {worst:.3g} (allowed {allowed:g})",
            "relative to the largest expected magnitude",
            "cuDNN computes wrongly here: use the locked one (see the check libraries), and test this GPU "
            "with `tfenv stress`",
        )


def operations(tf: Any, layout: str, precision: str) -> Iterator[tuple[str, Callable[[str], list[Any]]]]:
    """Name and function of a dtype. In float64 it computes in NHWC, which the CPU knows, and converts.

    What does not multiply matrices is the same with TF32 and without.
    """

    def inputs(dtype: str, *shapes: tuple[int, ...]) -> list[Any]:
        # Rounded as the device's, so that only what is computed differs.
        rounded = "float16" if precision == "float16" else "float32"
        return [tf.cast(some(tf, *shape, dtype=rounded, low=-0.5), dtype) for shape in shapes]

    def outward(x: Any, dtype: str) -> Any:
        return x if dtype == "float64" or layout == "NHWC" else tf.transpose(x, (0, 3, 1, 2))

    def inward(x: Any, dtype: str) -> Any:
        return x if dtype == "float64" or layout == "NHWC" else tf.transpose(x, (0, 2, 3, 1))

    def of(dtype: str) -> str:
        return "NHWC" if dtype == "float64" else layout

    def convolution(dtype: str) -> list[Any]:
        image, kernel = inputs(dtype, (2, 16, 16, 8), (3, 3, 8, 8))
        return with_gradients(
            lambda x, k: inward(
                tf.nn.conv2d(outward(x, dtype), k, strides=1, padding="SAME", data_format=of(dtype)), dtype
            ),
            [image, kernel],
        )

    def pooling(function: Any) -> Callable[[str], list[Any]]:
        def compute(dtype: str) -> list[Any]:
            return with_gradients(
                lambda x: inward(function(outward(x, dtype), 2, 2, "VALID", data_format=of(dtype)), dtype),
                inputs(dtype, (2, 16, 16, 8)),
            )

        return compute

    def with_gradients(function: Any, arguments: list[Any]) -> list[Any]:
        with tf.GradientTape() as tape:
            for argument in arguments:
                tape.watch(argument)
            result = function(*arguments)
            loss = tf.reduce_sum(result * result)
        return [result, *tape.gradient(loss, arguments)]

    def batch_norm(training: bool) -> Callable[[str], list[Any]]:
        def compute(dtype: str) -> list[Any]:
            (x,) = inputs(dtype, (4, 16, 16, 8))
            wide = "float64" if dtype == "float64" else "float32"
            scale, offset = some(tf, 8, dtype=wide, low=0.5), some(tf, 8, dtype=wide)
            mean, variance = some(tf, 8, dtype=wide, low=-0.5), some(tf, 8, dtype=wide, low=0.5)
            if dtype == "float64":
                if training:
                    mean, variance = tf.nn.moments(x, (0, 1, 2))
                return [(x - mean) * tf.math.rsqrt(variance + _EPSILON) * scale + offset]
            empty = tf.zeros((0,))
            result = tf.raw_ops.FusedBatchNormV3(
                x=outward(x, dtype),
                scale=scale,
                offset=offset,
                mean=empty if training else mean,
                variance=empty if training else variance,
                epsilon=_EPSILON,
                data_format=layout,
                is_training=training,
            )
            return [inward(result.y, dtype)]

        return compute

    yield "convolution and both gradients", convolution
    if precision != "tf32":
        yield "max pooling and gradient", pooling(tf.nn.max_pool2d)
        yield "average pooling and gradient", pooling(tf.nn.avg_pool2d)
        yield "batch norm in training", batch_norm(training=True)
        yield "batch norm in inference", batch_norm(training=False)


def lstm(tf: Any, rounded: str) -> Callable[[str], list[Any]]:
    """Keras' layer, which takes cuDNN's where it can, and its definition in float64."""
    shapes = ((2, _STEPS, 4), (4, 4 * _UNITS), (_UNITS, 4 * _UNITS), (4 * _UNITS,))
    parts = [some(tf, *shape, dtype=rounded, low=-0.5) for shape in shapes]

    def compute(dtype: str) -> list[Any]:
        x, kernel, recurrent, bias = (tf.cast(part, dtype) for part in parts)
        if dtype != "float64":
            layer = tf.keras.layers.LSTM(_UNITS, dtype=dtype)
            layer(x)  # makes its weights
            layer.set_weights([part.numpy() for part in (kernel, recurrent, bias)])
        with tf.GradientTape() as tape:
            tape.watch(x)
            result = defined(x, kernel, recurrent, bias) if dtype == "float64" else layer(x)
            loss = tf.reduce_sum(result * result)
        return [result, tape.gradient(loss, x)]

    def defined(x: Any, kernel: Any, recurrent: Any, bias: Any) -> Any:
        state = carry = tf.zeros((x.shape[0], _UNITS), x.dtype)
        for step in range(_STEPS):
            gates = tf.linalg.matmul(x[:, step], kernel) + tf.linalg.matmul(state, recurrent) + bias
            into, forget, new, out = tf.split(gates, 4, axis=1)
            carry = tf.sigmoid(forget) * carry + tf.sigmoid(into) * tf.tanh(new)
            state = tf.sigmoid(out) * tf.tanh(carry)
        return state

    return compute


def loaded(declared: Declared, files: list[str], report: Report) -> None:
    """cuDNN is in the process, with the part that has LSTMs, and it is the one compiled for."""
    found = {os.path.basename(path): path for path in files if "libcudnn" in path}
    if not found:
        report.error(
            "a convolution ran on the GPU, but no cuDNN is in the process",
            remedy="install TensorFlow's own wheel: rebuild the image from its lock",
        )
        return
    if not any(name.startswith("libcudnn_adv") for name in found):
        report.warning(
            "the LSTM was computed without cuDNN's LSTM",
            "\n".join(sorted(found)),
            "Keras takes it only with its default activations and without masks from the middle",
        )
    main = next((path for name, path in found.items() if name.startswith("libcudnn.so")), "")
    row = known("cudnn")
    if not main or row is None:
        return
    version = text(tuple(row.read(ctypes.CDLL(main))))
    compiled = declared.compiled_cudnn or str(build_info().get("cudnn_version", ""))
    report.facts["cudnn"] = {"loaded": version, "compiled": compiled}
    judge_cudnn(
        declared.cudnn, compiled if numbers(compiled) else "", version, f"{main} says {version}", report
    )
