"""Does the wheel hold machine code for this GPU, or PTX that the driver compiles, or neither?"""

from __future__ import annotations

import re
from typing import Any, Iterable, Mapping

from ..declared import Declared, Kernels
from ..versions import numbers

NATIVE, PTX, NONE, UNKNOWN = "machine code", "PTX", "nothing", "unknown"


def served(capability: tuple[int, ...], sass: Iterable[str]) -> bool:
    """Machine code runs on GPUs of the same major compute capability that are not older."""
    found = (numbers(one) for one in sass)
    return any(one[:1] == capability[:1] and one <= capability for one in found if one)


def within(capability: tuple[int, ...], rule: Kernels) -> bool:
    """Whether a rule is for this GPU."""
    last = numbers(rule.last)
    return numbers(rule.first) <= capability and (not last or capability <= last)


def wheel(declared: Declared, info: Mapping[str, Any], capability: tuple[int, ...]) -> tuple[str, list[str]]:
    """What the wheel holds for this GPU, and for which kernels that is not machine code.

    Args:
        info: TensorFlow's build information, for an image that declares nothing.
    """
    if not capability:
        return UNKNOWN, []
    if declared.compiled_sass:
        unusable = [rule for rule in declared.compiled_unusable if within(capability, rule)]
        ptx = [rule for rule in declared.compiled_ptx if within(capability, rule)]
        said = [f"{rule.what}: none that runs here ({rule.why})" for rule in unusable]
        said += [f"{rule.what}: PTX" for rule in ptx]
        native = served(capability, declared.compiled_sass)
        if ptx:
            return PTX, said
        return (NATIVE if native else NONE), said
    sass, ptx_from = built(info)
    if not sass and not ptx_from:
        return UNKNOWN, []
    if served(capability, sass):
        return NATIVE, []
    return (PTX, []) if any(numbers(one) <= capability for one in ptx_from) else (NONE, [])


def built(info: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Machine code (``sm_80``) and PTX (``compute_90``) that TensorFlow's build information names."""
    told = info.get("cuda_compute_capabilities") or ()
    names = told.split(",") if isinstance(told, str) else [str(one) for one in told]
    found: dict[str, list[str]] = {"sm": [], "compute": []}
    for name in names:
        match = re.match(r"(sm|compute)_(\d+)(\d)", name.strip())
        if match:
            found[match.group(1)].append(f"{match.group(2)}.{match.group(3)}")
    # A compute_XY of TensorFlow's configure stands for machine code and PTX both.
    return found["sm"] + found["compute"], found["compute"]


def nccl_unserved(declared: Declared, capability: tuple[int, ...]) -> bool:
    """Whether it is known that a linked NCCL has no code for this GPU: it holds no PTX."""
    known = declared.compiled_nccl_how == "linked" and bool(declared.nccl_sass) and bool(capability)
    return known and not served(capability, declared.nccl_sass)
