"""What a TensorFlow says in its small files: metadata, build_info.py and the headers that it ships."""

from __future__ import annotations

import re
from typing import Any

from tfenv.audit.headers import build_info, defines, metadata
from tfenv.audit.trees import Tree
from tfenv.errors import IntegrityError

#: Counted up when the same bytes would give something else: kept results are then read anew.
VERSION = 2

BUILD_INFO = "tensorflow/python/platform/build_info.py"
_METADATA = re.compile(r"tensorflow[\w.+-]*\.dist-info/METADATA")
#: Headers by what they tell: the first of these places that a release ships.
_INCLUDE = "tensorflow/include/"
_HEADERS: dict[str, tuple[tuple[str, ...], re.Pattern[str]]] = {
    "cuda_config.h": (
        ("third_party/gpus/cuda/cuda_config.h", "external/local_config_cuda/cuda/cuda/cuda_config.h"),
        re.compile(r"TF_\w+_VERSION|TF_CUDA_COMPUTE_CAPABILITIES"),
    ),
    "cuda.h": (
        ("third_party/gpus/cuda/include/cuda.h", "external/cuda_cudart/include/cuda.h"),
        re.compile("CUDA_VERSION"),
    ),
    "cudnn_version.h": (
        (
            "third_party/gpus/cudnn/include/cudnn_version.h",
            "external/cuda_cudnn/include/cudnn_version.h",
            "external/local_config_cuda/cuda/cudnn/include/cudnn_version.h",
        ),
        re.compile("CUDNN_(?:MAJOR|MINOR|PATCHLEVEL)"),
    ),
    "nccl.h": (
        ("external/nccl_archive/src/nccl.h", "external/cuda_nccl/include/nccl.h", "third_party/nccl/nccl.h"),
        re.compile("NCCL_(?:MAJOR|MINOR|PATCH)"),
    ),
}


def read(tree: Tree) -> dict[str, Any]:
    """The JSON value that is kept of one TensorFlow.

    ``headers`` holds the macros by header, with the ``path`` they were read from; a header that is not
    shipped is not in it.

    Raises:
        IntegrityError: a file is damaged, or what makes it a TensorFlow is not there.
    """
    names = tree.sizes()
    described = next((name for name in names if _METADATA.fullmatch(name)), None)
    if described is None or BUILD_INFO not in names:
        raise IntegrityError(
            f"there is no {BUILD_INFO if described else 'METADATA'}",
            remedy="this is no TensorFlow, or one that is made in another way than those known",
        )
    wanted: dict[str, str] = {described: "", BUILD_INFO: ""}
    for header, (places, _) in _HEADERS.items():
        place = next((_INCLUDE + p for p in places if _INCLUDE + p in names), None)
        if place:
            wanted[place] = header
    # Forward through the wheel: neighbours then come in one request.
    texts = {name: tree.text(name) for name in names if name in wanted}
    headers = {
        wanted[name]: {"path": name, **defines(text, _HEADERS[wanted[name]][1])}
        for name, text in texts.items()
        if wanted[name]
    }
    return {
        **metadata(texts[described]),
        "build_info": build_info(texts[BUILD_INFO]),
        "headers": dict(sorted(headers.items())),
    }
