"""What a TensorFlow's large libraries hold: kernels by GPU, NCCL, the exact cuDNN, what they open."""

from __future__ import annotations

import re
from typing import Any

from tfenv.audit.cudnn import compiled_with
from tfenv.audit.elf import Elf
from tfenv.audit.fatbin import groups
from tfenv.audit.shallow import read as read_shallow
from tfenv.audit.trees import Tree
from tfenv.errors import IntegrityError

#: Counted up when the same bytes would give something else: kept results are then read anew.
VERSION = 1

# The others hold no kernels; the smallest of the libraries named above has 36 MB.
_LEAST = 1 << 24
_LIBRARY = re.compile(r"\.so(?:\.\d+)*$")
_NCCL = re.compile(rb"NCCL version (\d+\.\d+\.\d+)")
_HANDLE = re.compile(rb"Get(Cu[a-z]+(?:Lt|Runtime)?|Nccl|NvInfer(?:Plugin)?)DsoHandle")
_NVIDIA = re.compile(r"nvidia/(\w+)/lib$")


def read(tree: Tree) -> dict[str, Any]:
    """The JSON value that is kept of one TensorFlow's libraries.

    Raises:
        IntegrityError: a library is damaged, or none is there.
    """
    major = read_shallow(tree)["headers"].get("cuda_config.h", {}).get("TF_CUDNN_VERSION", "")
    large = [name for name, size in tree.sizes().items() if size >= _LEAST and _LIBRARY.search(name)]
    if not large:
        raise IntegrityError("no library is large enough to hold kernels", remedy="this is no GPU TensorFlow")
    libraries: dict[str, Any] = {}
    for name in large:
        with tree.mapped(name) as data:
            libraries[name] = _library(Elf(data, name), major.partition(".")[0])
    return {"libraries": dict(sorted(libraries.items()))}


def _library(elf: Elf, cudnn_major: str) -> dict[str, Any]:
    data = elf.data
    try:
        fatbins = groups(elf)
    except ValueError as error:
        raise IntegrityError(
            f"a fatbin in {elf.name} cannot be read: {error}",
            remedy="it is damaged, or of a kind that tfenv does not know: please report the version",
        ) from error
    versions = sorted({m[1].decode() for m in _NCCL.finditer(data)})
    handles = sorted({m[1].decode() for m in _HANDLE.finditer(data)})
    folders = [match[1] for folder in elf.runpath if (match := _NVIDIA.search(folder))]
    return {
        "size": len(data),
        "needed": list(elf.needed),
        "nvidia_folders": sorted(set(folders)),
        "opens": handles,
        "nccl": versions,
        "cudnn": compiled_with(elf, cudnn_major) if re.fullmatch("[0-9]{1,3}", cudnn_major) else "",
        "fatbins": fatbins,
    }
