"""Matrix products on every GPU at once, for minutes, each compared with the first of the same inputs.

The inputs are the same on all GPUs. A product has to equal the first one of its GPU bit for bit, since
cuBLAS promises that for one stream; the first ones have to agree with those of the other GPUs, and some
rows with a product in float64 on the CPU, within ``TOLERANCE`` of the largest element.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from .devices import Devices, take
from .lines import Emit

#: Differences of sums of 8192 products that are rounded on the way: TF32 and float16 keep 11 bits.
TOLERANCE = 4e-3
PRECISIONS = ("float32", "float16")
_SLOT = 2.0  # seconds on one precision, and between two lines of progress
_ROWS = 4


def run(
    emit: Emit, *, seconds: float, size: int = 0, count: int = 0, allow_cpu: bool = False, spoil: int = -1
) -> None:
    """Load the GPUs.

    Args:
        seconds: how long; size: of the square matrices (0: 8192, less on a CPU); count: GPUs (0: all).
        spoil: change one element of one product on this GPU, to prove that it is found.

    Raises:
        NoGpuError: there is none.
    """
    import tensorflow as tf

    devices = take(tf, count, allow_cpu)
    size = size or (8192 if devices.is_gpu else 128)
    emit({"event": "worker", "tensorflow": tf.__version__, "devices": list(devices.about), "size": size})
    state = {precision: _prepare(tf, devices, precision, size) for precision in PRECISIONS}
    for precision in PRECISIONS:
        _compare(tf, emit, precision, state[precision])
    emit({"event": "loaded"})
    deadline = time.monotonic() + seconds
    threads = [
        threading.Thread(
            target=_guarded, args=(tf, emit, name, gpu, state, size, deadline, gpu == spoil), daemon=True
        )
        for gpu, name in enumerate(devices.names)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    emit({"event": "unloaded"})


def _prepare(tf: Any, devices: Devices, precision: str, size: int) -> list[tuple[Any, Any, Any]]:
    """By GPU the two inputs and their first product."""
    with tf.device("/CPU:0"):
        shape = (size, size)
        inputs = [
            tf.cast(tf.random.stateless_uniform(shape, (seed, 1), -1.0, 1.0), precision) for seed in (1, 2)
        ]
    prepared = []
    for name in devices.names:
        with tf.device(name):
            left, right = (tf.identity(one) for one in inputs)
            tf.matmul(left, right)  # the library chooses its kernel on the first call
            prepared.append((left, right, tf.matmul(left, right)))
    return prepared


def _compare(tf: Any, emit: Emit, precision: str, made: list[tuple[Any, Any, Any]]) -> None:
    """Hold the first products to the CPU's and to each other."""
    with tf.device("/CPU:0"):
        left, right = (tf.cast(tf.identity(one), tf.float64) for one in made[0][:2])
        expected = tf.matmul(left[:_ROWS], right)
        scale = float(tf.reduce_max(tf.abs(expected)))
        firsts = [tf.identity(product) for _left, _right, product in made]
        for gpu, product in enumerate(firsts):
            far = tf.reduce_max(tf.abs(tf.cast(product[:_ROWS], tf.float64) - expected))
            apart = tf.reduce_max(tf.abs(tf.cast(product, tf.float32) - tf.cast(firsts[0], tf.float32)))
            emit(
                {
                    "event": "compared",
                    "gpu": gpu,
                    "precision": precision,
                    "to_cpu": float(far) / scale,
                    "to_first_gpu": float(apart) / scale,
                    "equal_bits": float(_differing(tf, product, firsts[0])) == 0.0,
                    "tolerance": TOLERANCE,
                }
            )


def _differing(tf: Any, one: Any, other: Any) -> Any:
    """How many groups of 8 bytes differ. int64: TensorFlow compares int32 on the CPU, not the GPU."""
    group = 8 // one.dtype.size
    shape = (-1, group)
    bits = [tf.bitcast(tf.reshape(tensor, shape), tf.int64) for tensor in (one, other)]
    return tf.reduce_sum(tf.cast(tf.not_equal(*bits), tf.float32))


def _guarded(tf: Any, emit: Emit, name: str, gpu: int, *arguments: Any) -> None:
    try:
        _load(tf, emit, name, gpu, *arguments)
    except Exception as error:  # one GPU that fails must not hide what the others do
        emit({"event": "broke", "gpu": gpu, "why": "{}: {}".format(type(error).__name__, error)[:1000]})


def _load(
    tf: Any,
    emit: Emit,
    name: str,
    gpu: int,
    state: dict[str, list[tuple[Any, Any, Any]]],
    size: int,
    deadline: float,
    spoil: bool,
) -> None:
    turn = 0
    with tf.device(name):
        while time.monotonic() < deadline:
            precision = PRECISIONS[turn % len(PRECISIONS)]
            turn += 1
            left, right, first = state[precision][gpu]
            begun = time.monotonic()
            number, wrong, groups = 0, 0, 0
            while time.monotonic() < min(begun + _SLOT, deadline) or not number:
                differing = tf.zeros(())
                for _ in range(8):
                    product = tf.matmul(left, right)
                    if spoil and turn == 3 and number == 0:
                        product = tf.tensor_scatter_nd_add(product, [[0, 0]], tf.ones((1,), product.dtype))
                    differing += _differing(tf, product, first)
                    number += 1
                found = int(differing)
                wrong, groups = wrong + bool(found), groups + found
            seconds = time.monotonic() - begun
            emit(
                {
                    "event": "progress",
                    "gpu": gpu,
                    "precision": precision,
                    "at": time.time(),
                    "products": number,
                    "wrong": wrong,
                    "differing": groups,
                    "tflops": round(2.0 * size**3 * number / seconds / 1e12, 2),
                }
            )
