"""What the image itself brings: its C library, packages, CUDA, places to write; what TensorFlow sees."""

from __future__ import annotations

import re
from typing import Optional

from .finding import DOCS, Facts, Finding, count, found


def musl(of: Facts) -> Optional[Finding]:
    """Alpine."""
    if not of["musl"]:
        return None
    return found(
        "broken",
        "this image is Alpine (musl), and CUDA and TensorFlow need glibc",
        "NVIDIA's libraries and TensorFlow's wheels are built for glibc.",
        "take an image of Debian or Ubuntu",
        "https://github.com/tensorflow/tensorflow/issues/85371",
    )


def cpu_build(of: Facts) -> Optional[Finding]:
    """A TensorFlow for CPUs."""
    names = [
        name for name in of["packages"] if name in ("tensorflow-cpu", "intel-tensorflow", "tensorflow-macos")
    ]
    others = [name for name in of["packages"] if name in ("tensorflow", "tensorflow-gpu", "tf-nightly")]
    if not names:
        return None
    return found(
        "broken" if not others else "limit",
        f"{names[0]} {of['packages'][names[0]]} is installed: it is built without CUDA"
        + (f", and lies over {others[0]}" if others else ""),
        "Both packages are the same folder, and the one that was installed last wins.",
        f"pip uninstall -y {' '.join([*names, *others])}, then pip install "
        f"tensorflow=={of['packages'][names[0]]}",
        "https://www.tensorflow.org/install/pip",
    )


def foreign_packages(of: Facts) -> Optional[Finding]:
    """Packages and libraries of the host leak into the container."""
    leaks = []
    for entry in of["env"].get("PYTHONPATH", "").split(":"):
        match = re.search(r"python(\d\.\d+)", entry)
        if match and match.group(1) != of["python"]:
            leaks.append(
                f"PYTHONPATH names packages of Python {match.group(1)} ({entry}), and this is {of['python']}"
            )
    for entry in of["env"].get("LD_LIBRARY_PATH", "").split(":"):
        if re.search(r"(conda|miniforge|mamba|anaconda)", entry, re.IGNORECASE) and not of["env"].get(
            "CONDA_PREFIX"
        ):
            leaks.append(f"LD_LIBRARY_PATH names libraries of a conda that is not active in here ({entry})")
    if not leaks:
        return None
    return found(
        "limit",
        "variables of the host have come along into the container",
        "; ".join(leaks) + ". What Python or CUDA finds there may not fit this image.",
        "Singularity and Apptainer: --contain --cleanenv; else: unset PYTHONPATH LD_LIBRARY_PATH",
        "https://github.com/apptainer/apptainer/issues/2706",
    )


def two_cudas(of: Facts) -> Optional[Finding]:
    """CUDA from the base and from wheels."""
    base, wheels = of["cuda"]["base"], of["cuda"]["wheels"]
    majors = {version.split(".")[0] for version in (*base, *wheels)}
    if not base or not wheels:
        return None
    several = len(majors) > 1
    return found(
        "limit" if several else "note",
        f"CUDA is here twice: {', '.join(base)} in the base, {', '.join(wheels)} as wheels",
        "Which one a program finds depends on LD_LIBRARY_PATH"
        + (", and they are of different major versions." if several else "."),
        "take one source: a base without CUDA with the wheels, or a base with CUDA without them",
        "https://github.com/IBM/text-generation-inference/issues/50",
    )


def home(of: Facts) -> Optional[Finding]:
    """No place to write for this user."""
    if of["home_writable"] and of["tmp_writable"]:
        return None
    what = (
        "HOME is not set"
        if not of["home"]
        else f"HOME is {of['home']}, where user {of['user'].get('uid')} may not write"
    )
    if of["home_writable"]:
        what = "the folder for temporary files cannot be written"
    return found(
        "limit",
        what,
        "A user without an entry in /etc/passwd gets HOME=/. Keras, matplotlib, pip and the "
        "kernel cache then say "
        "'Permission denied'.",
        "docker run -e HOME=/tmp, or a volume that this user may write",
        "https://github.com/twosixlabs/armory/issues/680",
    )


def shared_memory(of: Facts) -> Optional[Finding]:
    """Docker's 64 MB."""
    if not of["shm_mb"] or of["shm_mb"] > 128:
        return None
    return found(
        "limit",
        f"/dev/shm has {of['shm_mb']} MB",
        "NCCL and data loaders with several processes need more: 'No space left on device' "
        "then means this, not the disk.",
        "docker run --shm-size=2g (tfenv run does it)",
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
    )


def fewer_than_host(of: Facts) -> Optional[Finding]:
    """Not all of the host's GPUs are in here."""
    host = str(of.get("host", {}).get("gpus", ""))
    if not host.isdigit() or not count(of) or count(of) >= int(host) or "UUID: MIG-" in of["smi"]:
        return None
    return found(
        "note",
        f"{count(of)} of the host's {host} GPUs are in here",
        "The others were not given to this container, or are hidden by CUDA_VISIBLE_DEVICES.",
        "--gpus all gives all of them",
        DOCS,
    )


def tensorflow_differs(of: Facts) -> Optional[Finding]:
    """With --deep: the driver gives GPUs and TensorFlow does not see them."""
    deep = of.get("deep")
    if not deep:
        return None
    if deep.get("error"):
        return found(
            "broken",
            "TensorFlow cannot be imported in here",
            deep["error"],
            "tfenv explain says more of the message: python -c 'import tensorflow' 2>&1 | tfenv explain -",
            "https://www.tensorflow.org/install/errors",
        )
    if not count(of) or deep.get("gpus", 0) >= 1:
        return None
    if deep.get("cuda") is False:
        return found(
            "broken",
            f"TensorFlow {deep.get('version')} is built without CUDA",
            "tf.test.is_built_with_cuda() says so: a package for CPUs, or conda's cpu build.",
            "install tensorflow from the index with its CUDA libraries, or take a cell of tfenv",
            "https://www.tensorflow.org/install/pip",
        )
    missing = deep.get("missing", [])
    return found(
        "broken",
        "the driver gives a GPU, and TensorFlow does not take it"
        + (f": {', '.join(missing[:6])} cannot be loaded" if missing else ""),
        "A CUDA library that this TensorFlow opens at run time is missing, or is of another major version"
        + ("." if missing else "; newer releases name it only with TF_CPP_MAX_VLOG_LEVEL=1."),
        "put the libraries that it was compiled for where the loader finds them "
        "(LD_LIBRARY_PATH to site-packages/"
        "nvidia/*/lib for wheels), or take a cell of tfenv, which has them",
        "https://github.com/tensorflow/tensorflow/issues/63362",
    )
