"""Kernels of several kinds give on the GPU what they give on the CPU; where their code comes from."""

from __future__ import annotations

import os
import traceback
from typing import Any, Callable, Mapping

from ..context import Context
from ..devices import capability, take
from ..places import build_info
from ..protocol import Report
from ..versions import text
from . import _wheel_kernels
from ._loaded import compare_loaded
from ._numeric import TOLERANCES, on_both, some
from .environment import creatable

_MEGABYTE = 1 << 20
# The driver's own limit is 1 GiB; it was 256 MiB, and 32 MiB before.
# https://docs.nvidia.com/cuda/cuda-c-programming-guide/#env-vars
_LEAST_CACHE = 256 * _MEGABYTE
_SLOW_SECONDS = 2.0
_VOLUME = "keep the compute cache in a volume: docker run -v tfenv-cuda:{}"


def check(context: Context, report: Report) -> None:
    """Kernels of several kinds give on the GPU what they give on the CPU."""
    import tensorflow as tf

    device = take(tf, context)
    folder = cache_folder(os.environ)
    before = size(folder)
    timed = {}
    for name, (compute, tolerance) in operations(tf).items():
        try:
            found = on_both(tf, compute, device.names[0])
        except Exception as error:
            failed(name, error, report)
            continue
        timed[name] = found
        judge(name, found["distance"], found["device"], report, tolerance, device.kind)
    report.facts["seconds"] = {n: [f["first_seconds"], f["second_seconds"]] for n, f in timed.items()}
    after = size(folder)
    report.facts["cache"] = {"folder": folder, "bytes_before": before, "bytes_after": after}
    has, which = _wheel_kernels.wheel(context.declared, build_info(), capability(context))
    slowest = max([found["first_seconds"] for found in timed.values()] or [0.0])
    source(has, which, text(capability(context)), slowest, folder, report)
    cache(os.environ, folder, before, after, has, report)
    if device.is_gpu:
        compare_loaded(context.declared, report)


def judge(
    name: str,
    difference: float,
    device: str,
    report: Report,
    tolerance: float = TOLERANCES["tf32"],
    kind: str = "GPU",
) -> None:
    """Close enough, and really on the GPU."""
    if kind not in device:
        report.error(
            f"{name} was computed on {device!r}, not on a {kind}",
            remedy="the operation has no GPU kernel in this wheel: compare it with the release's own wheel",
        )
    if not difference <= tolerance:
        report.error(
            f"{name} differs between GPU and CPU by {difference:.3g} (allowed {tolerance:g})",
            remedy="the wheel's kernels do not serve this GPU: compare its compute capability "
            "with the wheel's",
        )


def failed(name: str, error: Exception, report: Report) -> None:
    """An operation that raises: most of the time there is no code for this GPU."""
    report.error(
        f"{name} fails on the GPU: {type(error).__name__}: {str(error)[:300]}",
        traceback.format_exc(),
        "'no kernel image' and 'invalid PTX' mean that the wheel has no code for this GPU, or that the "
        "driver is older than its PTX: take a newer row, or update the driver",
    )


def source(has: str, which: list[str], gpu: str, slowest: float, folder: str, report: Report) -> None:
    """Say whether kernels are machine code, or compiled by the driver at first use.

    Args:
        has: one of ``_wheel_kernels``' words. slowest: seconds of the slowest first kernel.
    """
    report.facts["kernels"] = {"for": gpu, "has": has, "which": which}
    took = f"the slowest first kernel took {slowest:.1f} s"
    evidence = "\n".join([*which, took])
    if has == _wheel_kernels.PTX:
        report.info(
            f"kernels for compute capability {gpu} are compiled from PTX at their first use",
            evidence,
            _VOLUME.format(folder),
        )
    elif has == _wheel_kernels.NONE:
        report.warning(
            f"the wheel is known to have neither machine code nor PTX for compute capability {gpu}",
            evidence,
            "take a newer row: `tfenv explain` names those that serve this GPU",
        )
    elif which:
        report.warning(f"some kernels do not run on compute capability {gpu}", evidence, "take a newer row")
    elif has == _wheel_kernels.UNKNOWN and slowest > _SLOW_SECONDS:
        report.info(
            f"{took}: kernels may be compiled from PTX at their first use", "", _VOLUME.format(folder)
        )


def cache(environ: Mapping[str, str], folder: str, before: int, after: int, has: str, report: Report) -> None:
    """The driver's cache of compiled kernels is written, and is large enough.

    Args:
        before, after: bytes in it before and after the kernels ran.
    """
    if environ.get("CUDA_CACHE_DISABLE") == "1":
        report.warning(
            "CUDA_CACHE_DISABLE=1: kernels are compiled again in every process",
            remedy="run without -e CUDA_CACHE_DISABLE",
        )
        return
    if not creatable(folder):
        report.warning(
            f"the cache of compiled kernels cannot be written: {folder}",
            "every new container compiles its kernels again",
            _VOLUME.format(folder),
        )
    elif has == _wheel_kernels.PTX and after == 0:
        report.warning(
            f"kernels were compiled from PTX, but nothing is in the compute cache {folder}",
            "CUDA_CACHE_PATH names a folder that the driver does not use, or it cannot write there",
            _VOLUME.format(folder),
        )
    told = environ.get("CUDA_CACHE_MAXSIZE", "")
    if told and (not told.isdigit() or int(told) < _LEAST_CACHE):
        report.warning(
            f"CUDA_CACHE_MAXSIZE is {told}: too small for TensorFlow's kernels",
            f"{after / _MEGABYTE:.0f} MiB are in the cache after one of each kind (before: "
            f"{before / _MEGABYTE:.0f} MiB)",
            f"set it to {4 * _LEAST_CACHE} or more, or leave it out",
        )
    elif told and after > 0.9 * int(told):
        report.warning(
            f"the compute cache is full: {after / _MEGABYTE:.0f} of {int(told) / _MEGABYTE:.0f} MiB",
            remedy="raise CUDA_CACHE_MAXSIZE, or empty the cache",
        )


def cache_folder(environ: Mapping[str, str]) -> str:
    """Where the driver keeps compiled kernels."""
    default = os.path.join(environ.get("HOME") or "/", ".nv", "ComputeCache")
    return environ.get("CUDA_CACHE_PATH") or default


def size(folder: str) -> int:
    """Bytes in a folder; what goes away meanwhile is not counted."""
    total = 0
    for where, _folders, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(os.path.join(where, name)).st_size
            except OSError:
                continue
    return total


def operations(tf: Any) -> dict[str, tuple[Callable[[], Any], float]]:
    """Operation and tolerance for each source of kernels: cuBLAS, Eigen, MLIR, cub, cuFFT, cuSOLVER."""
    square = some(tf, 64, 64)
    definite = tf.linalg.matmul(square, square, transpose_b=True) / 64.0 + tf.eye(64)
    tf32, full = TOLERANCES["tf32"], TOLERANCES["float32"]
    return {
        "matmul": (lambda: tf.linalg.matmul(square, square), tf32),
        "elementwise": (
            lambda: tf.math.tanh(square) * 2.0 + tf.cast(tf.cast(square * 9.0, "int32"), "float32"),
            full,
        ),
        "reduce": (lambda: tf.reduce_sum(square, axis=0), full),
        "softmax": (lambda: tf.nn.softmax(square), full),
        "scatter": (lambda: tf.math.unsorted_segment_sum(square, [n % 8 for n in range(64)], 8), full),
        "top_k": (lambda: tf.math.top_k(square, 4).values, full),
        "fft": (lambda: tf.abs(tf.signal.rfft(square)), full),
        "cholesky": (lambda: tf.linalg.cholesky(definite), tf32),
    }
