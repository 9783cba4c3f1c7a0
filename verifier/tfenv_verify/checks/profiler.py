"""The profiler records kernels: CUPTI is there, it is of the right CUDA, and the host permits it."""

from __future__ import annotations

import glob
import os
import tempfile
from typing import Any, Iterator

from ..context import Context
from ..declared import Declared
from ..devices import take
from ..places import scratch
from ..protocol import Report, shorten
from ..stderr_tee import stderr_copied
from ._loaded import compare_loaded
from ._numeric import flat, some

_PERMISSION = ("INSUFFICIENT_PRIVILEGES", "ERR_NVGPUCTRPERM", "NOT_PERMITTED", "permission")


def check(context: Context, report: Report) -> None:
    """A profile of a few operations holds kernels of the GPU."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "0"
    with tempfile.TemporaryDirectory(dir=scratch(), prefix="tfenv-profile-") as folder:
        with stderr_copied() as log:
            import tensorflow as tf

            device = take(tf, context)
            record(tf, device.names[0], folder)
        files = glob.glob(os.path.join(glob.escape(folder), "**", "*.xplane.pb"), recursive=True)
        space = read(files)
    report.facts["planes"] = space["planes"]
    lines = [*space["errors"], *log.lines_with("CUPTI", "cupti")]
    judge(space["planes"], lines, context.declared, report, "GPU:" if device.is_gpu else "CPU")
    if device.is_gpu:
        compare_loaded(context.declared, report)


def record(tf: Any, name: str, folder: str) -> None:
    """Profile some operations on a device."""
    with tf.device(name):
        square = some(tf, 256, 256)
        flat(tf.linalg.matmul(square, square))  # what starts at the first use is no part of it
        tf.profiler.experimental.start(folder)
        try:
            for _ in range(5):
                flat(tf.reduce_sum(tf.tanh(tf.linalg.matmul(square, square))))
        finally:
            tf.profiler.experimental.stop()


def judge(
    planes: dict[str, int], lines: list[str], declared: Declared, report: Report, kind: str = "GPU:"
) -> None:
    """A plane of the GPU, with events in it.

    Args:
        planes: events by name of the plane. lines: what the profiler and CUPTI complained of.
    """
    events = sum(number for name, number in planes.items() if kind in name)
    if events:
        report.facts["events"] = events
        return
    evidence = "\n".join([shorten(lines), "planes: " + (", ".join(sorted(planes)) or "none")])
    if any("libcupti" in soname for soname in declared.absent):
        report.warning(
            "the profiler sees no kernels: this image is declared to have no libcupti",
            evidence,
            "take a cell whose CUDA comes from wheels to profile",
        )
    elif any(word in line for line in lines for word in _PERMISSION):
        report.warning(
            "the profiler sees no kernels: the host does not permit it",
            evidence,
            "on the host: options nvidia NVreg_RestrictProfilingToAdminUsers=0, or docker run "
            "--cap-add SYS_ADMIN",
        )
    elif not planes:
        report.error("the profiler wrote nothing", evidence, "compare TensorFlow with the lock")
    else:
        report.error(
            "the profiler sees no kernels of the GPU",
            evidence,
            "libcupti is missing or of another CUDA (see the check libraries), or another profiler runs",
        )


def read(files: list[str]) -> dict[str, Any]:
    """Events by name of the plane, and errors, of XSpace files.

    Decoded here, since TensorFlow has moved the class that does it. Fields by
    https://github.com/openxla/tsl/blob/main/tsl/profiler/protobuf/xplane.proto
    """
    planes: dict[str, int] = {}
    errors: list[str] = []
    for path in files:
        with open(path, "rb") as stream:
            data = stream.read()
        for field, value in fields(data):
            if field in (2, 3):  # XSpace.errors, .warnings
                errors.append(value.decode("utf-8", "replace"))
            elif field == 1:  # XSpace.planes
                name, events = "", 0
                for part, inner in fields(value):
                    if part == 2:  # XPlane.name
                        name = inner.decode("utf-8", "replace")
                    elif part == 3:  # XPlane.lines; XLine.events is 4
                        events += sum(1 for number, _ in fields(inner) if number == 4)
                planes[name] = planes.get(name, 0) + events
    return {"planes": planes, "errors": errors}


def fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and bytes of each length-delimited field of a message; the others are passed over.

    Raises:
        ValueError: it is no message.
    """
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            _, at = _varint(data, at)
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        elif kind == 2:
            length, at = _varint(data, at)
            if at + length > len(data):
                raise ValueError("a field is longer than its message")
            yield key >> 3, data[at : at + length]
            at += length
        else:
            raise ValueError(f"wire type {kind} is not in use")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while at < len(data):
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
    raise ValueError("a number has no end")
