"""The NCCL that TensorFlow was built with, read from its own files: no call tells a linked one."""

from __future__ import annotations

import mmap
import re
from typing import Iterable

from ..context import Context
from ..declared import Declared
from ..devices import capability
from ..places import tensorflow_libraries
from ..protocol import Report
from ..versions import numbers, text
from ._wheel_kernels import nccl_unserved

# NCCL keeps its version as text for its log. TensorFlow leaves the part after + unexpanded:
# "NCCL version 2.16.5+cudaCUDA_MAJOR.CUDA_MINOR".
_TEXT = re.compile(rb"NCCL version (\d+\.\d+\.\d+)(?![\d.])")
_LOCK = "rebuild the image from its lock; if the wheel is the right one, measure its facts again"


def check(context: Context, report: Report) -> None:
    """The NCCL that is linked into TensorFlow is the declared one."""
    inspect(context.declared, tensorflow_libraries(), report)
    kernels(context.declared, capability(context), context.gpu.count, report)


def inspect(declared: Declared, files: Iterable[str], report: Report) -> None:
    """Compare what the files hold with what is declared, and how it is declared."""
    held = {path: versions(path) for path in files}
    report.facts["files"] = held
    linked = sorted({version for found in held.values() for version in found}, key=numbers)
    judge(declared, linked, report)


def judge(declared: Declared, linked: list[str], report: Report) -> None:
    """``linked``: the versions found in TensorFlow's files; one if NCCL is linked in, else none."""
    wanted, how = declared.compiled_nccl, declared.compiled_nccl_how
    said = " and ".join(linked) or "none"
    if declared.foreign and not wanted:
        report.info(f"NCCL linked into TensorFlow: {said}")
    elif how == "linked":
        if [numbers(version) for version in linked] != [numbers(wanted)]:
            report.error(
                f"NCCL linked into TensorFlow: {said}; {wanted or 'no version'} is declared", remedy=_LOCK
            )
    elif how == "loaded":
        # Which one is loaded, and its version, is for the check libraries.
        if linked:
            report.error(f"NCCL {said} is linked into TensorFlow, but declared as loaded", remedy=_LOCK)
        if not any(library.name == "nccl" for library in declared.libraries):
            report.error(
                "NCCL is declared as loaded, but is not among the declared libraries",
                remedy="lock the image with NVIDIA's NCCL wheel",
            )
    else:
        report.error(
            f"whether NCCL is linked or loaded is declared as {how!r}", remedy="run tfenv's own verify"
        )


def kernels(declared: Declared, gpu: tuple[int, ...], count: int, report: Report) -> None:
    """Whether a linked NCCL has machine code for this GPU; it holds no PTX.

    Args:
        gpu: its compute capability, empty without one. count: how many there are.
    """
    report.facts["sass"] = list(declared.nccl_sass)
    if nccl_unserved(declared, gpu):
        (report.warning if count > 1 else report.info)(
            f"the NCCL {declared.compiled_nccl} in TensorFlow has no code for compute capability {text(gpu)}",
            f"machine code for {', '.join(declared.nccl_sass)}, no PTX",
            "tf.distribute.MirroredStrategy(cross_device_ops=tf.distribute.HierarchicalCopyAllReduce())",
        )


def versions(path: str) -> list[str]:
    """The versions of NCCL that a file names, each once. A file has up to 1 GB: it is mapped."""
    with open(path, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return sorted({match.group(1).decode("ascii") for match in _TEXT.finditer(data)})
