"""The words that rules are sorted by: layers, from the ground up, and what goes with them."""

from __future__ import annotations

from typing import Literal

#: Layer -> what is in it. Of several causes that nothing else puts in order, the lowest leads.
LAYERS = {
    "hardware": "GPU, memory, links between GPUs, the machine's firmware",
    "driver": "NVIDIA's driver and its kernel module, Fabric Manager",
    "host": "the operating system: limits, permissions, virtual machines, WSL 2",
    "disk": "space and inodes",
    "network": "registry, package index, proxy, certificates",
    "runtime": "Docker, Podman, Singularity, Kubernetes, the NVIDIA Container Toolkit",
    "image": "what is, or is not, in the image",
    "build": "Dockerfile, BuildKit, apt",
    "packages": "Python packages and what they ask for",
    "libraries": "CUDA, cuDNN, NCCL and the loader that finds them",
    "tensorflow": "TensorFlow's wheel: what it was compiled for",
    "code": "the user's own program",
}
Confidence = Literal["certain", "likely", "possible"]
#: fails: ends the program or the build. degrades: it goes on, slower or without the GPU. none: harmless.
Effect = Literal["fails", "degrades", "none"]
Outcome = Literal["diagnose", "refuse", "lint", "verify-fail", "build-fail", "warn", "api-guard", "info"]
