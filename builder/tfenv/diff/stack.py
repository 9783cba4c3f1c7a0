"""TensorFlow and the CUDA libraries of an image: one table of where each version is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from .model import Known

TENSORFLOW = "TensorFlow"
_FRAMEWORK = re.compile(
    r"(?:nvidia-)?(?:tensorflow|tf-nightly|tf_nightly)(?:-(?:gpu|cpu|rocm|intel|aarch64|cpu-aws|macos))?"
)


@dataclass(frozen=True)
class Part:
    """One part of the stack, and what to look for: wheel, Debian package, variable, library."""

    name: str
    wheel: str
    debian: str
    variable: str = ""
    library: str = ""


#: What matters first stands first.
PARTS = (
    Part("CUDA", r"nvidia-cuda-runtime(-cu\d+)?", r"cuda-cudart-\d+-\d+", "CUDA_VERSION", "libcudart"),
    Part("cuDNN", r"nvidia-cudnn(-cu\d+)?", r"libcudnn\d+(-cuda-\d+)?", "NV_CUDNN_VERSION", "libcudnn"),
    Part("cuBLAS", r"nvidia-cublas(-cu\d+)?", r"libcublas-\d+-\d+", "", "libcublas"),
    Part("NCCL", r"nvidia-nccl(-cu\d+)?", r"libnccl2", "", "libnccl"),
    Part("TensorRT", r"tensorrt(-cu\d+)?", r"libnvinfer\d+", "", "libnvinfer"),
    Part("cuFFT", r"nvidia-cufft(-cu\d+)?", r"libcufft-\d+-\d+", "", "libcufft"),
    Part("cuRAND", r"nvidia-curand(-cu\d+)?", r"libcurand-\d+-\d+", "", "libcurand"),
    Part("cuSOLVER", r"nvidia-cusolver(-cu\d+)?", r"libcusolver-\d+-\d+", "", "libcusolver"),
    Part("cuSPARSE", r"nvidia-cusparse(-cu\d+)?", r"libcusparse-\d+-\d+", "", "libcusparse"),
    Part("nvJitLink", r"nvidia-nvjitlink(-cu\d+)?", r"libnvjitlink-\d+-\d+", "", "libnvJitLink"),
    Part("NVRTC", r"nvidia-cuda-nvrtc(-cu\d+)?", r"cuda-nvrtc-\d+-\d+", "", "libnvrtc"),
    Part("CUPTI", r"nvidia-cuda-cupti(-cu\d+)?", r"cuda-cupti-\d+-\d+", "", "libcupti"),
    Part("ptxas", r"nvidia-cuda-nvcc(-cu\d+)?", r"cuda-nvcc-\d+-\d+", "", ""),
)
_UNLOADED = re.compile(r"\.so\.([0-9][0-9.]*)$")


def framework(wheels: Mapping[str, str]) -> str:
    """TensorFlow as it is installed, e.g. ``2.15.1``, with the package's name where that is another."""
    found = {name: version for name, version in wheels.items() if _FRAMEWORK.fullmatch(name)}
    if "tensorflow" in found:
        return found["tensorflow"]
    return ", ".join(f"{version} ({name})" for name, version in sorted(found.items()))


def stack(
    wheels: Known,
    debian: Known,
    environment: Known,
    libraries: Known,
    declared: Mapping[str, str] | None = None,
) -> Known:
    """The versions of TensorFlow and of the CUDA libraries, as exactly as anything says.

    Args:
        declared: what the inputs or the labels say, where nothing that is installed does.
    """
    values: dict[str, str] = {}
    if told := framework(wheels.values):
        values[TENSORFLOW] = told
    for part in PARTS:
        if version := _version(part, wheels, debian, environment, libraries):
            values[part.name] = version
    for name, version in (declared or {}).items():
        values.setdefault(name, version)
    complete = wheels.complete and libraries.complete
    return Known(values, complete, "" if complete else wheels.why or libraries.why)


def _version(part: Part, wheels: Known, debian: Known, environment: Known, libraries: Known) -> str:
    for table, pattern in ((wheels, part.wheel), (debian, part.debian)):
        found = {v for name, v in table.values.items() if re.fullmatch(pattern, name)}
        if found:
            return " and ".join(sorted(found))
    if part.variable and (told := environment.values.get(part.variable)):
        return told
    names = (n for n in libraries.values if part.library and n.startswith(f"{part.library}.so."))
    versions = [match[1] for name in names if (match := _UNLOADED.search(name))]
    return max(versions, key=len, default="")


def agree(one: str, other: str) -> bool:
    """Whether two versions are the same as far as both go: ``12.2`` and ``12.2.140-1``."""
    left, right = (re.split(r"[.]", v.partition("-")[0].partition("+")[0]) for v in (one, other))
    shared = min(len(left), len(right))
    return left[:shared] == right[:shared]
