"""The process has the declared environment, and somewhere to write."""

from __future__ import annotations

import os
import re
from typing import Mapping

from ..context import Context
from ..declared import Declared
from ..places import writable
from ..protocol import Report

# A container runtime sets this one to what it gives: `void` where devices come by CDI, else a list.
# https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
_BY_RUNTIME = "NVIDIA_VISIBLE_DEVICES"
_DEVICE = r"(all|\d+(:\d+)?|(GPU|MIG)-[\w/-]+|nvidia\.com/\w+=[\w:/-]+)"
# TF_CPP_* only change what is logged.
_SWITCH = re.compile(
    r"(TF|XLA|CUDNN|CUBLAS|NCCL)_(?!CPP_)\w+|CUDA_(CACHE_\w+|LAUNCH_BLOCKING|MODULE_LOADING|FORCE_PTX_JIT)"
    r"|NVIDIA_TF32_OVERRIDE|LD_(PRELOAD|LIBRARY_PATH|AUDIT)|PYTHON(PATH|HOME|STARTUP)|KERAS_\w+"
)
_GIVEN = re.compile(rf"void|{_DEVICE}(,{_DEVICE})*")


def check(context: Context, report: Report) -> None:
    """The declared environment is there; HOME and the CUDA cache are writable."""
    variables(context.declared, os.environ, report)
    switches(context.declared, os.environ, report)
    home(context.declared, os.environ, report)
    cuda_cache(os.environ, report)
    temporary(os.environ, report)
    report.facts["uid"], report.facts["gid"] = os.getuid(), os.getgid()
    if os.getuid() == 0:
        report.info(
            "the process runs as root: files that it makes in a mounted folder belong to root",
            remedy='docker run --user "$(id -u):$(id -g)"',
        )


def variables(declared: Declared, environ: Mapping[str, str], report: Report) -> None:
    """Each declared variable has its declared value."""
    for name, wanted in sorted(declared.env.items()):
        got = environ.get(name)
        if got == wanted:
            continue
        if name == _BY_RUNTIME and got is not None and _GIVEN.fullmatch(got):
            report.info(f"{name} is {got!r}, set by the container runtime; {wanted!r} is declared")
        else:
            report.error(
                f"{name} is {'not set' if got is None else repr(got)}; {wanted!r} is declared",
                remedy=f"run without -e {name} and without env -i, or rebuild the image",
            )


def switches(declared: Declared, environ: Mapping[str, str], report: Report) -> None:
    """Variables that change what TensorFlow loads or computes, and that the image does not set itself."""
    found = sorted(
        f"{name}={value}"
        for name, value in environ.items()
        if _SWITCH.fullmatch(name) and declared.env.get(name) != value
    )
    if found:
        report.info(
            f"{len(found)} variables change what TensorFlow loads or computes",
            "\n".join(found),
            "run without them where a result or a speed surprises",
        )


def home(declared: Declared, environ: Mapping[str, str], report: Report) -> None:
    """HOME exists and is writable for this user: Keras, matplotlib and pip write there."""
    folder = environ.get("HOME", "")
    report.facts["home"] = folder
    say = report.warning if declared.foreign else report.error
    if not folder:
        say("HOME is not set", remedy="run without env -i, or with -e HOME=/tmp")
    elif not os.path.isdir(folder):
        say(f"HOME is {folder}, which does not exist", remedy="docker run -e HOME=/tmp")
    elif not writable(folder):
        say(
            f"HOME is {folder}, in which user {os.getuid()} cannot write",
            remedy=f"mount a writable folder: docker run --tmpfs {folder}:mode=1777",
        )


def cuda_cache(environ: Mapping[str, str], report: Report) -> None:
    """The driver's cache of compiled kernels can be written.

    Without it every new container compiles again what the wheel holds only as PTX: with TensorFlow
    2.15 on compute capability 9.0 that was 13.5 s against 0.4 s for the first convolution.
    """
    default = os.path.join(environ.get("HOME") or "/", ".nv", "ComputeCache")
    folder = environ.get("CUDA_CACHE_PATH") or default
    report.facts["cuda_cache"] = folder
    if environ.get("CUDA_CACHE_DISABLE") == "1":
        report.warning("CUDA_CACHE_DISABLE=1: kernels are compiled again in every process")
    elif not creatable(folder):
        report.warning(
            f"the cache of compiled kernels cannot be written: {folder}",
            "every new container compiles its kernels again",
            f"mount a volume: docker run -v tfenv-cuda:{folder}",
        )


def temporary(environ: Mapping[str, str], report: Report) -> None:
    """The folder in which TensorFlow makes temporary files is writable; it takes the first set."""
    folder = environ.get("TMPDIR") or environ.get("TMP") or "/tmp"
    report.facts["temporary"] = folder
    if not writable(folder):
        report.warning(
            f"no temporary file can be made in {folder}: XLA cannot call ptxas",
            remedy="docker run --tmpfs /tmp, or -e TMPDIR=<a writable folder>",
        )


def creatable(folder: str) -> bool:
    """Whether this folder exists and is writable, or its nearest existing parent is."""
    path = os.path.abspath(folder)
    while not os.path.lexists(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return os.path.isdir(path) and writable(path)
