"""Kernels of several kinds give on the GPU what they give on the CPU."""

from __future__ import annotations

from typing import Any, Callable

from ..context import Context
from ..protocol import Report
from ._numeric import grow_memory, on_both, some

TOLERANCE = 5e-3  # TF32, the default for float32 products since Ampere, has 10 bits of mantissa


def check(_context: Context, report: Report) -> None:
    """Kernels of several kinds give on the GPU what they give on the CPU."""
    import tensorflow as tf

    grow_memory(tf)
    report.facts["first_call_seconds"] = {}
    for name, compute in operations(tf).items():
        difference, seconds, device = on_both(tf, compute)
        report.facts["first_call_seconds"][name] = seconds
        judge(name, difference, device, report)


def judge(name: str, difference: float, device: str, report: Report) -> None:
    """Close enough, and really on the GPU."""
    if "GPU" not in device:
        report.error(f"{name} was computed on {device!r}, not on a GPU")
    if not difference <= TOLERANCE:
        report.error(
            f"{name} differs between GPU and CPU by {difference:.3g} (allowed {TOLERANCE:g})",
            remedy="the wheel's kernels do not serve this GPU: compare its compute capability "
            "with the wheel's",
        )


def operations(tf: Any) -> dict[str, Callable[[], Any]]:
    """One operation for each source of kernels: cuBLAS, Eigen, MLIR, cub, cuFFT, cuSOLVER."""
    square = some(tf, 64, 64)
    definite = tf.linalg.matmul(square, square, transpose_b=True) / 64.0 + tf.eye(64)
    return {
        "matmul": lambda: tf.linalg.matmul(square, square),
        "elementwise": lambda: tf.math.tanh(square) * 2.0 + tf.cast(tf.cast(square, "int32"), "float32"),
        "reduce": lambda: tf.reduce_sum(square, axis=0),
        "softmax": lambda: tf.nn.softmax(square),
        "scatter": lambda: tf.math.unsorted_segment_sum(square, [n % 8 for n in range(64)], 8),
        "top_k": lambda: tf.math.top_k(square, 4).values,
        "fft": lambda: tf.abs(tf.signal.rfft(square)),
        "cholesky": lambda: tf.linalg.cholesky(definite),
    }
