"""Matrices for tests: the text of one, any that hypothesis thinks of, and made-up facts to go with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from tfenv import facts
from tfenv.errors import UsageError
from tfenv.facts import Compiled, Ptx
from tfenv.matrix import load_matrix
from tfenv.model import Matrix

TEXT = """\
repository: tfenv
defaults:
  base: debian12
bases:
  debian12:
    kind: debian
    suite: bookworm
    pythons: {"3.11": [python3.11]}
    epoch: 2023-06-10T00:00:00Z
    packages: [apt]
cuda_sets:
  cu12.2-cudnn8.9:
    cuda: "12.2"
    cudnn: "8.9"
    epoch: 2024-03-20T00:00:00Z
    wheels: [nvidia-cublas-cu12==12.2.5.6]
rows:
  - tensorflow: 2.15.1
    cuda_set: cu12.2-cudnn8.9
    pythons: ["3.11"]
    bases: [debian12]
    requirements: [six]
"""

#: A base that is an image, for ``with_ubuntu``.
UBUNTU = """\
  ubuntu22.04:
    kind: nvidia
    provided_pythons: ["3.10", "3.11"]
    glibc: "2.35"
"""
IMAGE = "nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04"
DIGEST = f"sha256:{'5' * 64}"
_IMAGES = """\
    images:
      ubuntu22.04: %s
    tools: [nvidia-cuda-nvcc-cu12==12.2.140]
"""


def with_ubuntu(image: str = IMAGE, *, only: bool = False) -> str:
    """The good matrix on Ubuntu too, or there only."""
    text = changed("cuda_sets:\n", f"{UBUNTU}cuda_sets:\n").replace("rows:\n", f"{_IMAGES % image}rows:\n")
    return text.replace(
        "bases: [debian12]", "bases: [ubuntu22.04]" if only else "bases: [debian12, ubuntu22.04]"
    )


def changed(old: str, new: str) -> str:
    """The text of a good matrix with one thing changed."""
    assert TEXT.count(old) == 1, old
    return TEXT.replace(old, new)


def load(folder: Path, text: str | bytes, compiled: Any = facts.compiled) -> Matrix:
    """Load a matrix from its text."""
    path = folder / "matrix.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_matrix(path, compiled)


def made_up(tensorflow: str, **changes: Any) -> Compiled:
    """Facts of a release that was compiled for CUDA 12.2.0 and cuDNN 8.9.4, or of none (2.99.x)."""
    if tensorflow.startswith("2.99."):
        raise UsageError(f"nothing is known of {tensorflow}", remedy="use another")
    values: dict[str, Any] = {
        "tensorflow": tensorflow,
        "released": "2024-03-08T23:47:37Z",
        "pythons": ("3.9", "3.10", "3.11"),
        "cuda": "12.2.0",
        "cudnn": "8.9.4",
        "nccl": "2.16.5",
        "nccl_how": "linked",
        "nccl_sass": ("5.0",),
        "sass": ("5.0",),
        "ptx": (Ptx(since="9.0", isa="8.1", what="every kernel"),),
        "source": {},
    }
    return Compiled(**{**values, **changes})


RELEASES = ["2.9.3", "2.14.1", "2.15.0", "2.15.0.post1", "2.15.1", "2.16.0rc0", "2.16.2", "2.99.0"]
PYTHONS = ["3.9", "3.10", "3.11", "3.12"]
BASES = ["debian11", "debian12", "debian13", "ubuntu22.04"]


@st.composite
def specs(draw: st.DrawFn) -> dict[str, Any]:
    """The data of a matrix of the right shape, whatever it means."""
    bases = draw(st.lists(st.sampled_from(BASES), min_size=1, unique=True))
    releases = draw(st.lists(st.sampled_from(RELEASES), min_size=1, unique=True))

    def some(values: list[str], least: int = 1) -> list[str]:
        return draw(st.lists(st.sampled_from(values), min_size=least, unique=True))

    def base(name: str) -> dict[str, Any]:
        provided = some(PYTHONS, 0)
        if name.startswith("ubuntu"):
            return {"kind": "nvidia", "glibc": "2.35", "provided_pythons": provided}
        return {
            "kind": "debian",
            "suite": "some",
            "pythons": {python: [f"python{python}"] for python in some(PYTHONS)},
            "provided_pythons": provided,
            "epoch": "2023-06-10T00:00:00Z",
            "packages": ["apt"],
        }

    def cuda_set(cuda: str) -> dict[str, Any]:
        ubuntus = [name for name in bases if name.startswith("ubuntu")]
        flavours = ["cudnn8-runtime", "base"]
        return {
            "cuda": cuda,
            "cudnn": "8.9",
            "epoch": "2024-03-20T00:00:00Z",
            "wheels": draw(st.sampled_from([[], [f"nvidia-cublas-cu12=={cuda}.5.6"]])),
            "images": {
                name: f"nvidia/cuda:{cuda}.2-{draw(st.sampled_from(flavours))}-{name}"
                for name in (some(ubuntus, 0) if ubuntus else [])
            },
        }

    def row(release: str) -> dict[str, Any]:
        own = some(bases)
        other = draw(st.sampled_from(own))
        on = {other: "cu12.3-cudnn8.9"} if len(own) > 1 and draw(st.booleans()) else {}
        reason = {"other_libraries": "newer ones of one major version serve"} if on else {}
        return {
            "tensorflow": release,
            "cuda_set": "cu12.2-cudnn8.9",
            "cuda_set_on": on,
            **reason,
            "pythons": some(PYTHONS),
            "bases": own,
            "requirements": draw(st.sampled_from([[], ["six"], ["nvidia-cublas-cu12"]])),
        }

    return {
        "repository": "tfenv",
        "defaults": {"base": draw(st.sampled_from(bases))},
        "bases": {name: base(name) for name in bases},
        "cuda_sets": {f"cu{cuda}-cudnn8.9": cuda_set(cuda) for cuda in ("12.2", "12.3")},
        "rows": [row(release) for release in releases],
        "exclude": [],
    }


def expand(folder: Path, spec: dict[str, Any]) -> Matrix:
    """Load generated data, through a file as users do (JSON is YAML)."""
    return load(folder, json.dumps(spec), made_up)
