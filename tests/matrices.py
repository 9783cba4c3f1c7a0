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
    pythons: ["3.11"]
    cuda_from: wheels
    epoch: 2023-06-10T00:00:00Z
    packages: [apt, python3.11]
cuda_sets:
  cu12.2-cudnn8.9:
    cuda: "12.2"
    cudnn: "8.9"
    epoch: 2024-03-20T00:00:00Z
rows:
  - tensorflow: 2.15.1
    cuda_set: cu12.2-cudnn8.9
    pythons: ["3.11"]
    bases: [debian12]
    requirements: ["tensorflow==2.15.1", pip]
    cuda_wheels: ["tensorflow[and-cuda]==2.15.1"]
"""


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

    def some(values: list[str]) -> list[str]:
        return draw(st.lists(st.sampled_from(values), min_size=1, unique=True))

    def row(release: str) -> dict[str, Any]:
        wheels = draw(
            st.sampled_from([[], [f"tensorflow[and-cuda]=={release}"], ["nvidia-cudnn-cu11==8.6.0.163"]])
        )
        extra = draw(st.sampled_from([[], ["nvidia-cublas-cu12"]]))
        return {
            "tensorflow": release,
            "cuda_set": "cu12.2-cudnn8.9",
            "pythons": some(PYTHONS),
            "bases": some(bases),
            "requirements": [f"tensorflow=={release}", "pip", *extra],
            "cuda_wheels": wheels,
        }

    return {
        "repository": "tfenv",
        "defaults": {"base": draw(st.sampled_from(bases))},
        "bases": {
            base: {
                "kind": "debian",
                "suite": "some",
                "pythons": some(PYTHONS),
                "cuda_from": draw(st.sampled_from(["wheels", "wheels", "base"])),
                "epoch": "2023-06-10T00:00:00Z",
                "packages": ["apt"],
            }
            for base in bases
        },
        "cuda_sets": {"cu12.2-cudnn8.9": {"cuda": "12.2", "cudnn": "8.9", "epoch": "2024-03-20T00:00:00Z"}},
        "rows": [row(release) for release in releases],
        "exclude": [],
    }


def expand(folder: Path, spec: dict[str, Any]) -> Matrix:
    """Load generated data, through a file as users do (JSON is YAML)."""
    return load(folder, json.dumps(spec), made_up)
