"""TensorFlow imports, is the declared one, and computes a known result."""

from __future__ import annotations

import platform
import time
import traceback
from typing import Any

from ..context import Context
from ..declared import Declared
from ..protocol import Report
from ..versions import agree
from ._loaded import compare_loaded


def check(context: Context, report: Report) -> None:
    """TensorFlow imports, is the declared version, and computes a known result."""
    started = time.monotonic()
    try:
        import tensorflow as tf
    except Exception as error:
        report.error(
            f"TensorFlow cannot be imported: {type(error).__name__}: {error}",
            traceback.format_exc(),
            "the last line of the traceback names what is missing or does not fit",
        )
        return
    report.facts["import_seconds"] = round(time.monotonic() - started, 2)
    report.facts["tensorflow"] = tf.__version__
    report.facts["python"] = platform.python_version()
    info = dict(tf.sysconfig.get_build_info())
    report.facts["build_info"] = {key: str(value) for key, value in sorted(info.items())}
    compare(
        context.declared,
        tensorflow=tf.__version__,
        python=platform.python_version(),
        with_cuda=bool(tf.test.is_built_with_cuda()),
        build_info=info,
        report=report,
    )
    started = time.monotonic()
    compute(tf, report)
    report.facts["compute_seconds"] = round(time.monotonic() - started, 2)
    compare_loaded(context.declared, report)


def compare(
    declared: Declared,
    *,
    tensorflow: str,
    python: str,
    with_cuda: bool,
    build_info: dict[str, Any],
    report: Report,
) -> None:
    """Declared against what is there. What is not declared is not compared."""
    if declared.tensorflow and tensorflow != declared.tensorflow:
        report.error(
            f"TensorFlow {tensorflow} is installed; {declared.tensorflow} is declared",
            remedy="rebuild the image from its lock",
        )
    if declared.python and not agree(python, declared.python):
        report.error(
            f"Python {python} runs; {declared.python} is declared",
            remedy="look at PATH: the environment's own folder has to come first",
        )
    if not with_cuda:
        message = "this TensorFlow was built without CUDA: it can never use a GPU"
        if declared.cuda:
            report.error(message, remedy="install tensorflow, not tensorflow-cpu")
        else:
            report.info(message)
    for what, wanted in (("cuda", declared.compiled_cuda), ("cudnn", declared.compiled_cudnn)):
        built = str(build_info.get(f"{what}_version", ""))
        if wanted and built and not agree(built, wanted):
            report.error(
                f"the wheel says that it was compiled for {what} {built}; "
                f"{wanted} is declared as what it was compiled for",
                remedy="the declaration is wrong: read the wheel again (tfenv lock)",
            )
        elif wanted and with_cuda and not built:
            (report.info if declared.foreign else report.error)(
                f"TensorFlow's build information does not name {what}: "
                f"nothing shows that it was compiled for {what} {wanted}",
                remedy="the wheel is not the declared release: rebuild the image from its lock",
            )
    built = str(build_info.get("cuda_version", ""))
    if declared.cuda and built and built.split(".")[0] != declared.cuda.split(".")[0]:
        report.error(
            f"TensorFlow was compiled for CUDA {built}, the tag declares CUDA {declared.cuda}",
            remedy="a wheel only runs with the CUDA major version it was compiled for",
        )
    elif declared.cuda and built and not agree(built, declared.cuda):
        # CUDA promises compatibility within a major version, but the tag has to say the truth.
        severity = report.info if declared.compiled_cuda else report.error
        severity(f"compiled for CUDA {built}, declared with CUDA {declared.cuda}")


def compute(tf: Any, report: Report) -> None:
    """Small integers in float32 are exact on every device, so equality is the test."""
    with tf.device("/CPU:0"):
        a = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        b = tf.constant([[5.0, 6.0], [7.0, 8.0]])
        product = tf.linalg.matmul(a, b).numpy().tolist()
        x = tf.Variable([1.0, 2.0, 3.0])
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(x * x * x)
        gradient = tape.gradient(loss, x).numpy().tolist()
    for what, got, expected in (
        ("a matrix product", product, [[19.0, 22.0], [43.0, 50.0]]),
        ("a gradient", gradient, [3.0, 12.0, 27.0]),
    ):
        if got != expected:
            report.error(f"{what} on the CPU gives {got}, not {expected}")
