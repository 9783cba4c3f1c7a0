"""Every rule of the table finds what it is for, and is silent beside it."""

from __future__ import annotations

import pytest
from compat_facts import FACTS, KNOWN, compiled
from packaging.specifiers import SpecifierSet
from tfenv.compat.model import Query, verdict
from tfenv.compat.subject import Known, subjects
from tfenv.compat.table import RULES, findings, judge, known
from tfenv.factfiles import read

Q = Query
NV = "nvidia/cuda:"
V100, P100, H100, RTX_5090 = ("Tesla V100-SXM2-16GB",), ("P100",), ("H100",), ("RTX 5090",)

#: By rule: questions in which it finds something, and questions that look like them in which it does not.
EXAMPLES: dict[str, tuple[list[Query], list[Query]]] = {
    "release-unknown": (
        [Q(tensorflow="2.30.0"), Q(tensorflow="1.15.5"), Q(tensorflow="2.3")],
        [Q(tensorflow="2.15.1"), Q(tensorflow="2.15"), Q(tensorflow="2.15.7"), Q()],
    ),
    "matrix-table-stale": (
        [Q(tensorflow="2.9.3"), Q(tensorflow="2.15.9"), Q(tensorflow="2.13.0rc0")],
        [Q(tensorflow="2.9.1"), Q(tensorflow="2.9"), Q(tensorflow="2.99.1")],
    ),
    "facts-of-another-patch": ([Q(tensorflow="2.16.3")], [Q(tensorflow="2.16.2"), Q(tensorflow="2.22.0rc1")]),
    "prerelease-not-allowed": (
        [Q(tensorflow="2.22.0rc0"), Q(tensorflow="2.13.0rc1"), Q(tensorflow="2.19.0.dev20250101")],
        [
            Q(tensorflow="2.21.0"),
            Q(tensorflow="2.15.0.post1"),
            Q(tensorflow="2.22.0rc0", allow_prerelease=True),
        ],
    ),
    "release-yanked": ([Q(tensorflow="2.16.4")], [Q(tensorflow="2.16.2")]),
    "aarch64-wheel-no-cuda": (
        [
            Q(tensorflow="2.19.1", platform="linux/arm64"),
            Q(platform="aarch64"),
            Q(tensorflow="2.21", gpus=("NVIDIA GB10",), driver="580"),
            *(Q(gpus=(name,)) for name in ("DGX Spark", "GH200 480GB", "GB200", "NVIDIA GB300", "sm_121")),
        ],
        [
            Q(tensorflow="2.19.1", platform="linux/amd64"),
            Q(tensorflow="2.19.1"),
            Q(tensorflow="2.21", gpus=("RTX 5090",), driver="580"),
            Q(gpus=("GH200",), base="nvcr.io/nvidia/tensorflow:25.02-tf2-py3"),
            Q(platform="linux/arm64", base="nvcr.io/nvidia/tensorflow:25.02-tf2-py3"),
            *(
                Q(gpus=(name,))
                for name in ("H100", "NVIDIA H200", "B200", "B300", "sm_90", "10.0", "GT 1030")
            ),
        ],
    ),
    "platform-unsupported": (
        [Q(platform="windows"), Q(platform="plan9/mips")],
        [Q(platform="linux/amd64"), Q(platform="linux/arm64")],
    ),
    "python-not-supported-by-tf": (
        [Q(tensorflow="2.18.1", python="3.13"), Q(tensorflow="2.15", python="3.8")],
        [Q(tensorflow="2.20.0", python="3.13"), Q(tensorflow="2.15", python="3.11.7"), Q(tensorflow="2.15")],
    ),
    "extra-unresolvable": (
        [
            Q(tensorflow="2.14.1", python="3.11", cuda_source="pip"),
            Q(tensorflow="2.15.0", extra=("tensorflow[and-cuda]==2.15.0",)),
            Q(tensorflow="2.14.1", python="3.11", by_tfenv=True),
        ],
        [
            Q(tensorflow="2.14.1", python="3.10", cuda_source="pip"),
            Q(tensorflow="2.15.1", python="3.11", cuda_source="pip"),
            Q(tensorflow="2.14.1", python="3.11", extra=("nvidia-cudnn-cu11==8.7.0.84",)),
        ],
    ),
    "extra-missing": (
        [Q(tensorflow="2.13.1", extra=("tensorflow[and-cuda]==2.13.1",))],
        [Q(tensorflow="2.14.1", extra=("tensorflow[and-cuda]==2.14.1",)), Q(tensorflow="2.13.1")],
    ),
    "pip-cuda-libs-not-on-loader-path": (
        [
            Q(tensorflow="2.16.1", cuda_source="pip"),
            Q(tensorflow="2.10.1", extra=("nvidia-cudnn-cu11==8.6.0.163",)),
        ],
        [
            Q(tensorflow="2.16.2", cuda_source="pip"),
            Q(tensorflow="2.16.1", cuda_source="wheels", by_tfenv=True),
            Q(tensorflow="2.16.1", cuda_source="pip", env=(("LD_LIBRARY_PATH", "/x/nvidia/cudnn/lib"),)),
            Q(tensorflow="2.16.1"),
        ],
    ),
    "python-eol": ([Q(python="3.8")], [Q(python="3.13"), Q(python="3.99")]),
    "musl-base": (
        [Q(base="python:3.12-alpine"), Q(base="alpine:3.20"), Q(base="python:3.11-alpine3.19")],
        [Q(base="python:3.12-slim"), Q(base="ubuntu:22.04")],
    ),
    "base-line-withdrawn": (
        [Q(base=f"{NV}10.2-cudnn7-devel-ubuntu18.04"), Q(base=f"{NV}9.0-base-ubuntu16.04")],
        [
            Q(base=f"{NV}11.0.3-base-ubuntu20.04"),
            Q(base=f"{NV}12.9.1-base-ubuntu22.04"),
            Q(base="ubuntu:10.04"),
        ],
    ),
    "base-tag-removed": (
        [Q(base=f"{NV}11.4.0-cudnn8-devel-ubuntu20.04"), Q(base=f"{NV}11.2.1-base-ubuntu18.04")],
        [Q(base=f"{NV}11.4.3-cudnn8-devel-ubuntu20.04"), Q(base=f"{NV}10.2-base-ubuntu18.04")],
    ),
    "base-cudnn-variant-missing": (
        [
            Q(tensorflow="2.17", base=f"{NV}12.3.2-cudnn8-runtime-ubuntu22.04"),
            Q(base=f"{NV}12.4.0-cudnn-runtime-ubuntu22.04"),
        ],
        [Q(base=f"{NV}12.3.2-cudnn9-runtime-ubuntu22.04"), Q(base=f"{NV}12.77.0-cudnn8-runtime-ubuntu22.04")],
    ),
    "base-flavour-lacks-cudnn": (
        [
            Q(tensorflow="2.15", base=f"{NV}12.2.2-base-ubuntu22.04", cuda_source="base"),
            Q(tensorflow="2.15", base=f"{NV}12.2.2-runtime-ubuntu22.04"),
            Q(tensorflow="2.15", base=f"{NV}12.2.2-devel-ubuntu22.04"),
        ],
        [
            Q(tensorflow="2.15", base=f"{NV}12.2.2-base-ubuntu22.04", cuda_source="pip"),
            Q(tensorflow="2.15", base=f"{NV}12.2.2-cudnn8-runtime-ubuntu22.04", cuda_source="base"),
        ],
    ),
    "base-without-ptxas": (
        [Q(tensorflow="2.15", base=f"{NV}12.2.2-cudnn8-runtime-ubuntu22.04")],
        [
            Q(tensorflow="2.15", base=f"{NV}12.2.2-cudnn8-devel-ubuntu22.04"),
            Q(tensorflow="2.15", base=f"{NV}12.2.2-base-ubuntu22.04", cuda_source="pip"),
        ],
    ),
    "base-without-cuda": (
        [Q(tensorflow="2.15", base="python:3.11-slim", cuda_source="base")],
        [Q(tensorflow="2.15", base="python:3.11-slim", cuda_source="pip"), Q(base="python:3.11-slim")],
    ),
    "no-cuda-libraries": (
        [Q(tensorflow="2.15", base="python:3.11-slim"), Q(tensorflow="2.17", base="debian:12")],
        [
            Q(tensorflow="2.15", base="python:3.11-slim", cuda_source="pip"),
            Q(tensorflow="2.15", base="python:3.11-slim", by_tfenv=True),
            Q(tensorflow="2.15", base=f"{NV}12.2.2-cudnn8-runtime-ubuntu22.04"),
            Q(tensorflow="2.15", base="somebody/image:1"),
        ],
    ),
    "ppa-dropped-eol-distro": (
        [Q(base=f"{NV}11.2.2-cudnn8-runtime-ubuntu20.04", python_source="deadsnakes")],
        [
            Q(base=f"{NV}12.2.2-cudnn8-runtime-ubuntu22.04", python_source="deadsnakes"),
            Q(base=f"{NV}11.2.2-cudnn8-runtime-ubuntu20.04"),
        ],
    ),
    "base-tag-unlisted": (
        [Q(base=f"{NV}11.0.3-cudnn8-runtime-ubuntu18.04"), Q(base=f"{NV}whatever")],
        [Q(base=f"{NV}11.0.3-cudnn8-runtime-ubuntu20.04"), Q(base=f"{NV}latest"), Q(base="team/own:1")],
    ),
    "base-unknown": (
        [Q(base="team/own:1", cuda_source="base"), Q(base="tensorflow/tensorflow:2.15.0-gpu")],
        [Q(base="team/own:1", cuda_source="base", cuda="12.2", cudnn="8.9"), Q(base="team/own:1")],
    ),
    "duplicate-cuda": (
        [
            Q(tensorflow="2.15", base=f"{NV}12.2.2-cudnn8-runtime-ubuntu22.04", cuda_source="pip"),
            Q(base=f"{NV}12.2.2-runtime-ubuntu22.04", extra=("tensorflow[and-cuda]",)),
        ],
        [
            Q(tensorflow="2.15", base=f"{NV}12.2.2-base-ubuntu22.04", cuda_source="pip"),
            Q(tensorflow="2.15", base=f"{NV}12.2.2-cudnn8-runtime-ubuntu22.04"),
        ],
    ),
    "floating-tag": (
        [Q(base="tensorflow/tensorflow:latest-gpu"), Q(base="nvidia/cuda"), Q(base="team/own:nightly")],
        [Q(base="tensorflow/tensorflow:2.15.0-gpu"), Q(base="team/own:latest@sha256:ab"), Q(base="debian12")],
    ),
    "base-tag-unsupported": (
        [Q(base=f"{NV}12.8.0-cudnn-runtime-ubuntu22.04")],
        [Q(base=f"{NV}12.8.1-cudnn-runtime-ubuntu22.04")],
    ),
    "base-tag-moved": (
        [Q(base=f"{NV}12.2.2-cudnn8-runtime-ubuntu22.04")],
        [
            Q(base=f"{NV}12.2.2-cudnn8-runtime-ubuntu22.04@sha256:ab"),
            Q(base=f"{NV}12.5.1-cudnn-runtime-ubuntu22.04"),
        ],
    ),
    "base-eol": (
        [
            Q(base=f"{NV}11.0.3-cudnn8-runtime-ubuntu20.04"),
            Q(base="debian:buster"),
            Q(base="python:3.8-bullseye"),
        ],
        [Q(base=f"{NV}12.2.2-base-ubuntu22.04"), Q(base="debian:bookworm"), Q(base="python:3.11")],
    ),
    "cuda-major-mismatch": (
        [
            Q(tensorflow="2.13", base=f"{NV}12.8.0-cudnn-runtime-ubuntu20.04"),
            Q(tensorflow="2.15", cuda="11.8"),
            Q(tensorflow="2.20", cuda="13.0"),
        ],
        [
            Q(tensorflow="2.13", cuda="11.8"),
            Q(tensorflow="2.15", cuda="12.9"),
            Q(tensorflow="2.15", base=f"{NV}11.8.0-base-ubuntu22.04", cuda_source="pip"),
        ],
    ),
    "cuda-minor-mismatch": (
        [
            Q(tensorflow="2.4", base=f"{NV}11.1.1-cudnn8-runtime-ubuntu20.04"),
            Q(tensorflow="2.4", cuda="11.8"),
            Q(tensorflow="2.18", cuda="12.2"),
            Q(tensorflow="2.18", extra=("nvidia-cuda-runtime-cu12==12.4.127",)),
        ],
        [
            Q(tensorflow="2.4", cuda="11.0.3"),
            Q(tensorflow="2.5", cuda="11.8"),
            Q(tensorflow="2.18", extra=("nvidia-cuda-runtime-cu12==12.5.82",)),
        ],
    ),
    "cudnn-major-mismatch": (
        [
            Q(tensorflow="2.17", base=f"{NV}12.3.2-cudnn9-runtime-ubuntu22.04"),
            Q(tensorflow="2.18", cudnn="8.9"),
        ],
        [Q(tensorflow="2.18", cudnn="9.10"), Q(tensorflow="2.17", cudnn="8.9.7")],
    ),
    "cudnn-minor-too-old": (
        [
            Q(tensorflow="2.18", base=f"{NV}12.5.1-cudnn-runtime-ubuntu22.04"),
            Q(tensorflow="2.5", base=f"{NV}11.0.3-cudnn8-runtime-ubuntu18.04"),
            Q(tensorflow="2.18", extra=("nvidia_cudnn_cu12==9.2.1.18",)),
        ],
        [
            Q(tensorflow="2.18", base=f"{NV}12.6.3-cudnn-runtime-ubuntu22.04"),
            Q(tensorflow="2.5", base=f"{NV}11.2.2-cudnn8-runtime-ubuntu20.04"),
            Q(tensorflow="2.4", base=f"{NV}11.0.3-cudnn8-runtime-ubuntu20.04"),
        ],
    ),
    "other-libraries": (
        [Q(tensorflow="2.10", cuda="11.8", cudnn="8.6")],
        [Q(tensorflow="2.10", cuda="11.2", cudnn="8.1"), Q(tensorflow="2.10", cuda="12.2")],
    ),
    "gpu-unknown": (
        [Q(tensorflow="2.15", gpus=("RTX 6090",)), Q(tensorflow="2.15", gpus=("RTX 6000",))],
        [Q(tensorflow="2.15", gpus=RTX_5090), Q(tensorflow="2.15")],
    ),
    "gpu-code-not-read": (
        [Q(tensorflow="2.22.0rc1", gpus=H100)],
        [Q(tensorflow="2.22.0rc0", gpus=H100), Q(tensorflow="2.22.0rc1")],
    ),
    "gpu-arch-unsupported-by-wheel": (
        [
            Q(tensorflow="2.19", gpus=("sm_120",), cuda="12.9", cudnn="9.10"),
            Q(tensorflow="2.17", gpus=("GTX 980",)),
            Q(tensorflow="2.15", gpus=("K80",)),
        ],
        [
            Q(tensorflow="2.21", gpus=("sm_120",), cuda="12.9", cudnn="9.10"),
            Q(tensorflow="2.16.2", gpus=("GTX 980",)),
            Q(tensorflow="2.14", gpus=("K80",)),
            Q(tensorflow="2.19", gpus=H100),
            Q(tensorflow="2.22.0rc1", gpus=("sm_120",)),
        ],
    ),
    "gpu-not-in-libraries": (
        [
            Q(tensorflow="2.21", gpus=V100, cuda="12.9", cudnn="9.28"),
            Q(tensorflow="2.21", gpus=RTX_5090, cuda="12.5", cudnn="9.3"),
        ],
        [
            Q(tensorflow="2.21", gpus=V100, cuda="12.9", cudnn="9.10.2.21"),
            Q(tensorflow="2.21", gpus=RTX_5090, cuda="12.9", cudnn="9.10"),
            Q(tensorflow="2.21", gpus=("T4",), cuda="12.9", cudnn="9.28"),
        ],
    ),
    "libraries-older-than-gpu": (
        [Q(tensorflow="2.10", gpus=H100), Q(tensorflow="2.10", gpus=("RTX 4090",))],
        [Q(tensorflow="2.10", gpus=H100, cuda="11.8", cudnn="8.6"), Q(tensorflow="2.10", gpus=("A100",))],
    ),
    "extra-cudnn-too-new": (
        [
            Q(tensorflow="2.20", gpus=V100, cuda_source="wheels"),
            Q(tensorflow="2.20", gpus=P100, extra=("tensorflow[and-cuda]==2.20.0",)),
            Q(tensorflow="2.20", gpus=V100, extra=("tensorflow[and-cuda]", "nvidia-cudnn-cu12~=9.10")),
        ],
        [
            Q(tensorflow="2.20", gpus=("T4",), cuda_source="wheels"),
            Q(tensorflow="2.20", gpus=V100, extra=("tensorflow[and-cuda]", "nvidia_cudnn_cu12<9.11")),
            Q(tensorflow="2.20", gpus=V100, extra=("tensorflow[and-cuda]", "nvidia-cudnn-cu12==9.10.2.21")),
            Q(tensorflow="2.19", gpus=V100, cuda_source="wheels"),  # its extra pins the cuDNN
            Q(tensorflow="2.20", gpus=V100, by_tfenv=True),
            Q(tensorflow="2.20", gpus=V100),
        ],
    ),
    "driver-older-than-gpu": (
        [Q(tensorflow="2.21", gpus=RTX_5090, driver="535.104")],
        [Q(tensorflow="2.21", gpus=RTX_5090, driver="580.65.06"), Q(tensorflow="2.21", gpus=RTX_5090)],
    ),
    "driver-drops-gpu": (
        [
            Q(gpus=V100, driver="590.44.01"),
            Q(gpus=P100, driver="595.45.04"),
            Q(gpus=("K80",), driver="525.60.13"),
        ],
        [
            Q(gpus=V100, driver="580.95.05"),
            Q(gpus=("T4",), driver="595.45.04"),
            Q(gpus=("K80",), driver="470.82.01"),
        ],
    ),
    "driver-too-old": (
        [Q(tensorflow="2.15", driver="470.82.01"), Q(tensorflow="2.15", gpus=V100, driver="515.48.07")],
        [
            Q(tensorflow="2.15", driver="525.60.13"),
            Q(tensorflow="2.10", driver="470.82.01"),
            Q(tensorflow="2.21", gpus=RTX_5090, driver="470.82.01"),  # the GPU's own floor is higher
            Q(driver="400.1"),
        ],
    ),
    "driver-too-old-for-ptx": (
        [
            Q(tensorflow="2.18", gpus=H100, driver="535.104.05"),
            Q(tensorflow="2.15", gpus=H100, driver="525.60.13"),
        ],
        [
            Q(tensorflow="2.18", gpus=("A100",), driver="535.104.05"),
            Q(tensorflow="2.18", gpus=H100, driver="555.42.02"),
            Q(tensorflow="2.15", gpus=H100, driver="535.104.05"),
            Q(tensorflow="2.21", gpus=RTX_5090, driver="535.104.05"),  # the GPU's own floor is higher
        ],
    ),
    "driver-branch-alone": (
        [Q(tensorflow="2.15", driver="525"), Q(tensorflow="2.21", gpus=("RTX 5090",), driver="570")],
        [
            Q(tensorflow="2.15", driver="525.60.13"),
            Q(tensorflow="2.15", driver="535"),
            Q(tensorflow="2.15", driver="450"),
            Q(driver="525"),
        ],
    ),
    "driver-not-judged": (
        [Q(tensorflow="2.20", cuda="14.0", driver="600.1")],
        [Q(tensorflow="2.20", cuda="12.5", driver="600.1"), Q(tensorflow="2.20", cuda="14.0")],
    ),
    "jit-at-first-use": (
        [
            Q(tensorflow="2.15", gpus=H100),
            Q(tensorflow="2.18", gpus=H100),
            Q(tensorflow="2.15", gpus=("A10",)),
        ],
        [
            Q(tensorflow="2.18", gpus=("A10",)),
            Q(tensorflow="2.15", gpus=V100),
            Q(tensorflow="2.15", gpus=("K80",)),
        ],
    ),
    "nccl-without-code": (
        [Q(tensorflow="2.15.1", gpus=H100)],
        [Q(tensorflow="2.15.1", gpus=("A100",)), Q(tensorflow="2.21", gpus=H100)],
    ),
    "xla-cannot-target-gpu": (
        [Q(tensorflow="2.21", gpus=RTX_5090)],
        [Q(tensorflow="2.21", gpus=H100), Q(tensorflow="2.21")],
    ),
    "driver-branch-ended": (
        [Q(driver="535.104.05")],
        [Q(driver="580.65.06"), Q(driver="470.82.01")],
    ),
    "numpy2-with-numpy1-abi-tf": (
        [Q(tensorflow="2.10", extra=("numpy==2.0.0",)), Q(tensorflow="2.17", extra=("NumPy == 2.1",))],
        [
            Q(tensorflow="2.18", extra=("numpy==2.0.0",)),
            Q(tensorflow="2.10", extra=("numpy==1.26.4", "numpy-financial==2.0")),
            Q(tensorflow="2.10", extra=("numpy<2",)),
        ],
    ),
    "protobuf-too-new": (
        [Q(tensorflow="2.5", extra=("protobuf==6.33.0",))],
        [Q(tensorflow="2.5", extra=("protobuf==3.20.3",)), Q(tensorflow="2.18", extra=("protobuf==5.29.6",))],
    ),
    "setuptools-without-pkg-resources": (
        [Q(tensorflow="2.15", extra=("setuptools==82.0.0",))],
        [
            Q(tensorflow="2.15", extra=("setuptools==81.0.0",)),
            Q(tensorflow="2.21", extra=("setuptools==82.0.0",)),
        ],
    ),
    "keras-minor-mismatch": (
        [Q(tensorflow="2.15", extra=("keras==3.0.5",)), Q(tensorflow="2.16.2", extra=("keras==2.15.0",))],
        [Q(tensorflow="2.15", extra=("keras==2.15.0",)), Q(tensorflow="2.16.2", extra=("keras==3.5.0",))],
    ),
    "tf-keras-minor-mismatch": (
        [
            Q(tensorflow="2.16.1", extra=("tf-keras==2.15.0",)),
            Q(tensorflow="2.18", extra=("tf_keras==2.19.0",)),
        ],
        [Q(tensorflow="2.16.1", extra=("tf-keras==2.16.0",)), Q(tensorflow="2.18", extra=("keras==3.5",))],
    ),
    "cudnn-without-old-gpus": (
        [Q(tensorflow="2.20", extra=("nvidia-cudnn-cu12==9.28.0.42",))],
        [Q(tensorflow="2.20", extra=("nvidia-cudnn-cu12==9.10.2.21",))],
    ),
    "lock-conflict": (
        [
            Q(tensorflow="2.13", extra=("typing-extensions==4.5.0", "pydantic==2.3.0")),
            Q(tensorflow="2.13", extra=("typing_extensions==4.7.1",)),
            Q(tensorflow="2.15", extra=("wrapt==1.16.0",)),
        ],
        [
            Q(tensorflow="2.13", extra=("typing-extensions==4.5.0", "pydantic==1.10.12")),
            Q(tensorflow="2.14", extra=("typing-extensions==4.7.1", "pydantic==2.3.0")),
            Q(tensorflow="2.16.2", extra=("wrapt==1.16.0",)),
        ],
    ),
    "excluded-by-metadata": (
        [
            Q(tensorflow="2.15.1", extra=("gast==0.7.0",)),
            Q(tensorflow="2.15.1", extra=("gast>=0.7",)),
            Q(tensorflow="2.15.1", extra=("gast<0.1",)),
        ],
        [
            Q(tensorflow="2.15.1", extra=("gast>=0.4",)),
            Q(tensorflow="2.15.1", extra=("gast",)),
            Q(tensorflow="2.15.1", extra=("gast>0.5.3,<3,!=0.5.3.1",)),
            Q(tensorflow="2.15.1", extra=("gast==0.5.4",)),
            Q(tensorflow="2.16.2", extra=("gast==0.7.0",)),
            Q(tensorflow="2.15.1", extra=("colorama==9.0",)),
        ],
    ),
    "lock-foreign-platform": (
        [
            Q(extra=("tensorflow-intel==2.15.0",)),
            Q(extra=("tensorflow_macos==2.13.0",)),
            Q(extra=("pywin32",)),
        ],
        [
            Q(extra=("tensorflow-io-gcs-filesystem==0.31.0",)),
            Q(extra=("tensorflow-intel==2.15.0; platform_system == 'Windows'",)),
        ],
    ),
    "tensorflow-gpu-ended": (
        [Q(tensorflow="2.15", extra=("tensorflow-gpu==2.15.0",))],
        [Q(tensorflow="2.10", extra=("tensorflow-gpu==2.10.1",)), Q(extra=("tensorflow==2.15.0",))],
    ),
    "two-cuda-majors": (
        [Q(extra=("nvidia-cudnn-cu11==8.6.0.163", "nvidia-cublas-cu12"))],
        [Q(extra=("nvidia-cudnn-cu12==8.9.4.25", "nvidia-cublas-cu12"))],
    ),
    "not-a-dependency": (
        [Q(tensorflow="2.21", extra=("tensorflow==2.21.0", "numpy==2.1"))],
        [
            Q(tensorflow="2.21", extra=("tensorflow==2.21.0", "tensorboard==2.20.0")),
            Q(tensorflow="2.20", extra=("tensorflow==2.20.0",)),
            Q(tensorflow="2.21"),
        ],
    ),
    "nccl-not-installed": (
        [Q(tensorflow="2.21", extra=("nvidia-cudnn-cu12==9.10.2.21",))],
        [
            Q(tensorflow="2.21", extra=("nvidia-cudnn-cu12==9.10.2.21", "nvidia-nccl-cu12")),
            Q(tensorflow="2.20", extra=("nvidia-cudnn-cu12==9.10.2.21",)),
            Q(tensorflow="2.21", extra=("tensorflow[and-cuda]==2.21.0",)),
        ],
    ),
    "legacy-keras-var-without-package": (
        [
            Q(tensorflow="2.15", env=(("TF_USE_LEGACY_KERAS", "1"),)),
            Q(tensorflow="2.17", env=(("TF_USE_LEGACY_KERAS", "True"),)),
        ],
        [
            Q(tensorflow="2.17", env=(("TF_USE_LEGACY_KERAS", "1"),), extra=("tf_keras~=2.17.0",)),
            Q(tensorflow="2.15", env=(("TF_USE_LEGACY_KERAS", "0"),)),
            Q(tensorflow="2.15"),
        ],
    ),
}


def _with_more() -> Known:
    """The facts of the tests, and releases that were withdrawn or not read to the end."""
    from dataclasses import replace

    base = FACTS["2.16.2"]
    more = {
        "2.16.3": replace(base, tensorflow="2.16.3", cudnn="8", deep=False, sass=(), ptx=()),
        "2.16.4": replace(base, tensorflow="2.16.4", yanked="a broken build"),
    }

    def lookup(release: str):  # type: ignore[no-untyped-def]
        return more.get(release) or compiled(release)

    def requires(release: str) -> tuple[str, ...]:
        wanted = (
            "gast (!=0.5.0,!=0.5.1,!=0.5.2,<0.6,>=0.2.1)",
            "colorama (<1) ; platform_system == 'Windows'",
        )
        extra = {
            "2.19.1": ('nvidia-cudnn-cu12==9.3.0.75; extra == "and-cuda"',),
            "2.20.0": ('nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == "and-cuda"',),
        }
        return wanted if release == "2.15.1" else extra.get(release, ())

    return Known(compiled=lookup, releases=(*FACTS, "2.16.3", "2.16.4"), today=KNOWN.today, requires=requires)


WORLD = _with_more()


def _codes(query: Query) -> set[str]:
    return {finding.code for finding in findings(query, WORLD)}


def test_every_rule_has_an_example_and_a_look_alike() -> None:
    assert set(EXAMPLES) == {rule.code for rule in RULES}
    assert all(positive and negative for positive, negative in EXAMPLES.values())
    assert len({rule.code for rule in RULES}) == len(RULES)


@pytest.mark.parametrize(("code", "query"), [(c, q) for c, (found, _) in EXAMPLES.items() for q in found])
def test_found(code: str, query: Query) -> None:
    assert code in _codes(query)


@pytest.mark.parametrize(("code", "query"), [(c, q) for c, (_, silent) in EXAMPLES.items() for q in silent])
def test_not_found(code: str, query: Query) -> None:
    assert code not in _codes(query)


def test_a_rule_gives_its_own_code_alone() -> None:
    for positive, negative in EXAMPLES.values():
        for query in (*positive, *negative):
            for subject in subjects(query, WORLD):
                for rule in RULES:
                    assert {finding.code for finding in rule.check(subject)} <= {rule.code}


def test_findings_are_sentences_and_never_suggest_a_symlink() -> None:
    for positive, _ in EXAMPLES.values():
        for finding in (finding for query in positive for finding in findings(query, WORLD)):
            assert len(finding.message) > 20
            assert "  " not in finding.message + finding.remedy
            assert not finding.message.endswith(".")
            assert "ln -s" not in finding.message + finding.remedy
            assert finding.severity in ("warn", "limit", "unknown") or finding.remedy or finding.source


# --- the rows of the tables -----------------------------------------------------------------------------


def _release_for(specifier: str) -> str:
    fitting = [release for release in FACTS if release in SpecifierSet(specifier, prereleases=True)]
    return fitting[-1] if fitting else "2.6.5"


@pytest.mark.parametrize(
    "row", read("packages")["pins"], ids=lambda row: f"{row['package']}-{row['tensorflow']}"
)
def test_every_pin_refuses_what_is_outside_and_accepts_what_is_inside(row: dict[str, str]) -> None:
    release = _release_for(row["tensorflow"])
    minor = ".".join(release.split(".")[:2])
    bound = row["must_be"].lstrip("<>=")
    inside, outside = {
        "s": (f"{minor}.0", "2.0.0"),
        "<": ("0.1", f"{bound}.0"),
        ">": (f"{bound}.0", "2.1"),
    }[row["must_be"][0]]
    for version, found in ((inside, False), (outside, True)):
        query = Query(tensorflow=release, extra=(f"{row['package']}=={version}",))
        assert (row["code"] in _codes(query)) is found, (row, version)


def test_every_row_of_packages_has_a_source() -> None:
    tables = read("packages")
    rows = [*tables["pins"], *tables["needs"], *tables["unresolvable_extras"], *tables["loader_path"]]
    rows += [
        tables[name] for name in ("foreign", "legacy_keras", "gpu_packages", "driver_packages", "first_extra")
    ]
    assert all(len(row["source"]) > 10 for row in rows)
    for table in ("cublas", "cudnn", "arch_only_ptx", "nccl_hang"):
        assert len(read("kernels")[table]["source"]) > 20
    assert all(table["source"] for table in read("eol").values())


def test_what_was_seen_is_not_said_of_what_was_not() -> None:
    (sentence,) = (s for s in judge(Query(tensorflow="2.15.1", gpus=H100), WORLD).sentences if "NCCL" in s)
    assert read("kernels")["nccl_hang"]["seen"] in sentence
    assert "hangs" not in sentence


# --- the judgement --------------------------------------------------------------------------------------


def test_several_gpus_are_judged_each() -> None:
    told = judge(Query(tensorflow="2.18", gpus=("A100", "RTX 5090")), WORLD)
    assert told.outcome == "refused"
    assert "RTX 5090" in told.sentences[0]
    assert judge(Query(tensorflow="2.18", gpus=("A100", "T4")), WORLD).outcome == "runs"


def test_a_way_out_with_data_centre_gpus_alone() -> None:
    [of_h100] = [
        f for f in findings(Query(tensorflow="2.18", gpus=H100, driver="535.104"), WORLD) if "ptx" in f.code
    ]
    assert of_h100.severity == "refuse"
    assert "cuda-compat-12-3" in of_h100.remedy or "cuda-compat-12-5" in of_h100.remedy
    [of_4090] = [
        f for f in findings(Query(tensorflow="2.18", gpus=("RTX 4090",), driver="470.82.01"), WORLD)
        if f.code == "driver-too-old"
    ]  # fmt: skip
    assert "cuda-compat" not in of_4090.remedy
    inside = Query(
        tensorflow="2.18", gpus=H100, driver="535.104", base=f"{NV}12.6.3-cudnn-runtime-ubuntu22.04"
    )
    assert judge(inside, WORLD).outcome == "limit"


def test_no_driver_is_advised_that_the_gpu_does_not_have() -> None:
    asked = Query(tensorflow="2.15", gpus=("K80",), driver="470.82.01")
    [found] = [f for f in findings(asked, WORLD) if f.code == "driver-too-old"]
    assert "470 is the last branch" in found.remedy and "install" not in found.remedy
    [found] = [
        f for f in findings(Query(tensorflow="2.15", gpus=("V100",), driver="470.82.01"), WORLD)
        if f.code == "driver-too-old"
    ]  # fmt: skip
    assert "install the driver 525.60.13 or newer" in found.remedy


def test_libraries_that_are_not_named_can_still_be_chosen() -> None:
    assert judge(Query(tensorflow="2.21", gpus=RTX_5090), WORLD).outcome == "limit"
    assert judge(Query(tensorflow="2.10", gpus=H100), WORLD).outcome == "limit"
    assert judge(Query(tensorflow="2.10", gpus=H100, cuda="11.2", cudnn="8.1"), WORLD).outcome == "refused"
    assert (
        judge(Query(tensorflow="2.21", gpus=RTX_5090, cuda="12.9", cudnn="9.3"), WORLD).outcome == "refused"
    )
    assert judge(Query(tensorflow="2.15", gpus=RTX_5090), WORLD).outcome == "refused"


def test_the_release_that_would_run_is_named() -> None:
    told = judge(Query(tensorflow="2.19", gpus=RTX_5090, cuda="12.9", cudnn="9.10"), WORLD)
    assert "2.21.0" in told.findings[0].remedy
    assert "2.15" not in told.findings[0].remedy


def test_no_findings_is_runs() -> None:
    assert verdict(()).outcome == "runs"
    assert verdict(()).gravest is None
    assert judge(Query(tensorflow="2.15.1", python="3.11"), WORLD).as_dict() == {
        "outcome": "runs",
        "gravest": None,
        "findings": [],
    }


def test_the_committed_facts_can_be_asked() -> None:
    world = known()
    assert "2.15.1" in world.releases
    assert judge(Query(tensorflow="2.15.1", python="3.11"), world).outcome == "runs"
    assert isinstance(world.requires("2.15.1"), tuple)
    assert world.requires("9.9.9") == ()
