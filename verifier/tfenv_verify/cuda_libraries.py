"""The table of CUDA libraries: soname per CUDA version, and how each tells its own version.

A function that reads a version takes the loaded library (anything whose attributes are callable
as ctypes' are) and returns its numbers; AttributeError means that it has no such call.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Callable

from .declared import Library
from .versions import major_minor, numbers, text

Decode = Callable[[int], Any]
Read = Callable[[Any], Any]


def _cuda(n: int) -> tuple[int, ...]:
    return n // 1000, n % 1000 // 10


def _thousands(n: int) -> tuple[int, ...]:
    return n // 1000, n % 1000 // 100, n % 100


def _ten_thousands(n: int) -> tuple[int, ...]:
    return n // 10000, n % 10000 // 100, n % 100


def _cudnn(n: int) -> tuple[int, ...]:
    # cuDNN 9 moved from 1000 * major to 10000 * major; 8.9.4 is 8904, 9.3.0 is 90300.
    return _ten_thousands(n) if n >= 90000 else _thousands(n)


def _nccl(n: int) -> tuple[int, ...]:
    # NCCL 2.9 moved from 1000 * major to 10000 * major; 2.8.4 is 2804, 2.16.5 is 21605.
    return _ten_thousands(n) if n >= 10000 else _thousands(n)


def _pointed(symbol: str, decode: Decode) -> Read:
    """``status f(int *version)``."""

    def read(library: Any) -> tuple[int, ...]:
        value = ctypes.c_int(0)
        _succeed(symbol, getattr(library, symbol)(ctypes.byref(value)))
        return tuple(decode(value.value))

    return read


def _two(symbol: str) -> Read:
    """``status f(int *major, int *minor)``."""

    def read(library: Any) -> tuple[int, ...]:
        major, minor = ctypes.c_int(0), ctypes.c_int(0)
        _succeed(symbol, getattr(library, symbol)(ctypes.byref(major), ctypes.byref(minor)))
        return major.value, minor.value

    return read


def _three(symbol: str) -> Read:
    """``void f(int *major, int *minor, int *patch)``."""

    def read(library: Any) -> tuple[int, ...]:
        found = [ctypes.c_int(0) for _ in range(3)]
        getattr(library, symbol)(*(ctypes.byref(number) for number in found))
        return tuple(number.value for number in found)

    return read


def _returned(symbol: str, decode: Decode) -> Read:
    """``size_t f()``."""

    def read(library: Any) -> tuple[int, ...]:
        function = getattr(library, symbol)
        function.restype = ctypes.c_size_t
        return tuple(decode(int(function())))

    return read


def _property(symbol: str) -> Read:
    """``status f(libraryPropertyType, int *value)`` for major, minor and patch level."""

    def read(library: Any) -> tuple[int, ...]:
        found = []
        for which in (0, 1, 2):
            value = ctypes.c_int(0)
            _succeed(symbol, getattr(library, symbol)(which, ctypes.byref(value)))
            found.append(value.value)
        return tuple(found)

    return read


def _part(check: str) -> Read:
    """``status check()`` finds the part and those that it needs of one version; they tell it."""

    version = _returned("cudnnGetVersion", _cudnn)

    def read(library: Any) -> tuple[int, ...]:
        _succeed(check, getattr(library, check)())
        return tuple(version(library))

    return read


def _nothing(_library: Any) -> tuple[int, ...]:
    return ()


class CallError(OSError):
    """A call that did not succeed, with its ``status``."""

    def __init__(self, symbol: str, status: int) -> None:
        super().__init__(f"{symbol} returned error {status}")
        self.status = status


def _succeed(symbol: str, status: int) -> None:
    if status != 0:
        raise CallError(symbol, status)


@dataclass(frozen=True)
class Known:
    """One row of the table.

    Args:
        name: as in ``declared.json``.
        sonames: per CUDA ``major.minor`` or, failing that, per ``major``.
        call: what reads the version, for messages.
        read: reads the version from the loaded library.
        opened: whether every TensorFlow GPU build opens it itself (else it is loaded on demand).
        release: whether the number is a release; CUPTI's is only that of its interface.
        since: the first CUDA whose copy has the call; empty for all.
        silent: why no copy has such a call; ``read`` then gives nothing.
        driverless: the error that the call gives where there is no driver, if some copy needs one.
    """

    name: str
    sonames: dict[str, str]
    call: str
    read: Read
    opened: bool = True
    release: bool = True
    since: str = ""
    silent: str = ""
    driverless: int = 0

    def tells(self, cuda: str) -> bool:
        """Whether the copy of a CUDA ``major.minor`` has the call: of an unknown one it has to."""
        old = self.since and numbers(cuda) and major_minor(cuda) < numbers(self.since)
        return not (old or self.silent)


# What libcudnn.so.N itself opens on demand, so that a missing one shows only at the first use; with
# the call that finds it and the parts that it needs of one version, where there is one.
CUDNN_PARTS: dict[int, dict[str, str]] = {
    8: {
        "ops_infer": "cudnnOpsInferVersionCheck",
        "ops_train": "cudnnOpsTrainVersionCheck",
        "cnn_infer": "cudnnCnnInferVersionCheck",
        "cnn_train": "cudnnCnnTrainVersionCheck",
        "adv_infer": "cudnnAdvInferVersionCheck",
        "adv_train": "cudnnAdvTrainVersionCheck",
    },
    9: {
        "graph": "cudnnGraphVersionCheck",
        "ops": "cudnnOpsVersionCheck",
        "cnn": "cudnnCnnVersionCheck",
        "adv": "cudnnAdvVersionCheck",
        "heuristic": "",
        "engines_precompiled": "",
        "engines_runtime_compiled": "",
    },
}

KNOWN: tuple[Known, ...] = (
    Known(
        "cudart",
        {"11": "libcudart.so.11.0", "12": "libcudart.so.12", "13": "libcudart.so.13"},
        "cudaRuntimeGetVersion",
        _pointed("cudaRuntimeGetVersion", _cuda),
        driverless=35,  # cudaErrorInsufficientDriver, from CUDA 11; CUDA 12 asks no driver
    ),
    Known(
        "cublas",
        {"11": "libcublas.so.11", "12": "libcublas.so.12", "13": "libcublas.so.13"},
        "cublasGetProperty",
        _property("cublasGetProperty"),
    ),
    Known(
        "cublasLt",
        {"11": "libcublasLt.so.11", "12": "libcublasLt.so.12", "13": "libcublasLt.so.13"},
        "cublasLtGetVersion",
        _returned("cublasLtGetVersion", _ten_thousands),
    ),
    Known(
        "cufft",
        {"11": "libcufft.so.10", "12": "libcufft.so.11", "13": "libcufft.so.12"},
        "cufftGetVersion",
        _pointed("cufftGetVersion", _thousands),
    ),
    Known(
        "cusolver",
        {
            "11.0": "libcusolver.so.10",
            "11": "libcusolver.so.11",
            "12": "libcusolver.so.11",
            "13": "libcusolver.so.12",
        },
        "cusolverGetProperty",
        _property("cusolverGetProperty"),
    ),
    Known(
        "cusparse",
        {"11": "libcusparse.so.11", "12": "libcusparse.so.12", "13": "libcusparse.so.12"},
        "cusparseGetProperty",
        _property("cusparseGetProperty"),
    ),
    Known(
        "curand",
        {"11": "libcurand.so.10", "12": "libcurand.so.10", "13": "libcurand.so.10"},
        "curandGetProperty",
        _property("curandGetProperty"),
        opened=False,
    ),
    Known(
        "nvrtc",
        {
            "11.0": "libnvrtc.so.11.0",
            "11.1": "libnvrtc.so.11.1",
            "11": "libnvrtc.so.11.2",
            "12": "libnvrtc.so.12",
            "13": "libnvrtc.so.13",
        },
        "nvrtcVersion",
        _two("nvrtcVersion"),
        opened=False,
    ),
    Known(
        "nvjitlink",
        {"12": "libnvJitLink.so.12", "13": "libnvJitLink.so.13"},
        "nvJitLinkVersion",
        _two("nvJitLinkVersion"),
        opened=False,
        since="12.3",  # XLA says the same of it: stream_executor/cuda/nvjitlink.h
    ),
    Known(
        "cupti",
        {"11": "libcupti.so.{cuda}", "12": "libcupti.so.12", "13": "libcupti.so.13"},
        "cuptiGetVersion",
        _pointed("cuptiGetVersion", lambda n: (n,)),
        opened=False,
        release=False,
    ),
    Known(
        "nccl",
        {"11": "libnccl.so.2", "12": "libnccl.so.2", "13": "libnccl.so.2"},
        "ncclGetVersion",
        _pointed("ncclGetVersion", _nccl),
        opened=False,
    ),
    Known(
        "nvshmem_host",
        {"12": "libnvshmem_host.so.3", "13": "libnvshmem_host.so.3"},
        "nvshmemx_vendor_get_version_info",
        _three("nvshmemx_vendor_get_version_info"),
        opened=False,
    ),
    # Its soname follows cuDNN's own major version, not CUDA's.
    Known("cudnn", {}, "cudnnGetVersion", _returned("cudnnGetVersion", _cudnn)),
    *(
        Known(f"cudnn_{name}", {}, check, _part(check), opened=False)
        if check
        else Known(f"cudnn_{name}", {}, "no call", _nothing, opened=False, silent="cuDNN gives it none")
        for parts in CUDNN_PARTS.values()
        for name, check in parts.items()
    ),
)


def known(name: str, soname: str = "") -> Known | None:
    """The row of a library, by name in any case or by the stem of its soname."""
    stem = soname[3:].split(".so")[0] if soname.startswith("lib") else ""
    wanted = {name.lower(), stem.lower()}
    return next((row for row in KNOWN if row.name.lower() in wanted), None)


def soname(row: Known, cuda: str) -> str:
    """The soname of a library in a CUDA ``major.minor``, or empty if that CUDA has none."""
    cuda = text(major_minor(cuda))
    found = row.sonames.get(cuda) or row.sonames.get(cuda.split(".")[0], "")
    return found.format(cuda=cuda)


def wanted_by_default(cuda: str, cudnn_major: int) -> tuple[Library, ...]:
    """The libraries of an image that declares none: what every GPU build of TensorFlow opens."""
    found = [Library(row.name, soname(row, cuda)) for row in KNOWN if row.opened]
    if cudnn_major:
        found.append(Library("cudnn", f"libcudnn.so.{cudnn_major}"))
    return tuple(library for library in found if library.soname)


def cudnn_parts(major: int) -> tuple[str, ...]:
    """The sonames of cuDNN's own parts; empty before cuDNN 8, which was one file."""
    return tuple(f"libcudnn_{part}.so.{major}" for part in CUDNN_PARTS.get(major, {}))
