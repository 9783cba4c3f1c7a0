"""Texts that look alike and have different causes; whole outputs, and outputs in which nothing is wrong."""

from __future__ import annotations

from typing import Any

import case_scores
import pytest
from ruamel.yaml import YAML
from tfenv.knowledge import explain

LOGS: list[dict[str, Any]] = YAML(typ="safe").load(case_scores.FIXTURES / "text_logs.yaml")
SMI = "| NVIDIA-SMI 535.104.05   Driver Version: 535.104.05   CUDA Version: 12.2 |\n"
FRAGMENT = (
    "If the cause is memory fragmentation maybe the environment variable 'TF_GPU_ALLOCATOR=x' will improve"
)
ALIKE = {
    "no space left on device": {
        "host-disk-full": "write /var/lib/docker/tmp/GetImageBlob1: no space left on device",
        "shm-too-small": "NCCL WARN Call to posix_fallocate failed : No space left on device",
        "inotify-limit": "inotify_add_watch(/logs): No space left on device",
        "inodes-full": "Filesystem Inodes IUsed IFree IUse% Mounted on\n/dev/sda1 655 655 0 100% /\n"
        "OSError: [Errno 28] No space left on device: '/home/a'",
        "no-space-left": "OSError: [Errno 28] No space left on device",
    },
    "driver/library version mismatch": {
        "host-driver-needs-reboot": "host nvidia-smi: Failed to initialize NVML:"
        " Driver/library version mismatch",
        "driver-libs-baked-into-image": "host nvidia-smi: OK, Driver Version: 535.183.01\n"
        "container nvidia-smi: Failed to initialize NVML: Driver/library version mismatch",
        "driver-library-mismatch": "Failed to initialize NVML: Driver/library version mismatch",
    },
    "hash mismatch": {
        "hash-mismatch-wheel": "error: Hash mismatch for `numpy==1.26.4`\n  Expected: sha256:aa",
        "hash-mismatch-mirror": "Looking in indexes: https://mirror.example/nexus /simple\n"
        "THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE\nContent-Type: text/html",
        "apt-hash-mismatch": "E: Failed to fetch http://mirror.example/Packages.gz  Hash Sum mismatch",
    },
    "could not find cuda drivers": {
        "libcuda-missing": "Could not find cuda drivers on your machine, GPU will not be used.\n"
        "failed call to cuInit: UNKNOWN ERROR (303)",
        "cudart-missing": f"{SMI}Could not find cuda drivers on your machine, GPU will not be used.",
        "cuda-major-mismatch": f"{SMI}tensorflow 2.13.1\nnvcc: Cuda compilation tools, release 12.8\n"
        "Could not find cuda drivers on your machine, GPU will not be used.",
        "cuda-drivers-not-found": "Could not find cuda drivers on your machine, GPU will not be used.",
    },
    "CUDA_ERROR_NO_DEVICE": {
        "cuda-compat-shadows-driver": "failed call to cuInit: CUDA_ERROR_NO_DEVICE\n"
        "kernel version 455.32.0 does not match DSO version 460.73.1",
        "cuda-visible-devices-invalid": "CUDA_VISIBLE_DEVICES=gpu0\ncuInit: CUDA_ERROR_NO_DEVICE",
        "cuda-visible-devices-hides": "CUDA_VISIBLE_DEVICES=-1\nfailed call to cuInit: CUDA_ERROR_NO_DEVICE",
        "device-nodes-only-root": "crw-rw---- 1 root video 195, 0 Nov 1 10:00 /dev/nvidia0\n"
        "failed call to cuInit: CUDA_ERROR_NO_DEVICE",
        "cuda-no-device": "failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected",
    },
    "out of memory": {
        "gpu-out-of-memory": "ran out of memory trying to allocate 12.50GiB (rounded to 13421772800)",
        "gpu-memory-fragmentation": f"ran out of memory trying to allocate 3MiB (rounded to 1)\n{FRAGMENT}",
        "gpu-memory-taken": "failed to allocate 22.17G (23806083072 bytes) from device: "
        "CUDA_ERROR_OUT_OF_MEMORY",
        "host-oom-killed": "Out of memory: Killed process 4242 (python) total-vm:81234567kB",
        "harmless-allocator-hint": "ran out of memory trying to allocate 2.2GiB with freed_by_count=0. The"
        " caller indicates that this is not a failure, but may mean that there could be performance gains",
        "nccl-out-of-memory": "NCCL WARN Cuda failure 'out of memory'",
    },
    "unknown error of NVML": {
        "cgroup-access-lost": "Failed to initialize NVML: Unknown Error",
        "hook-insufficient-permissions": "Failed to initialize NVML: Insufficient Permissions",
    },
    "Read timed out": {
        "sdk-timeout": "UnixHTTPConnectionPool(host='localhost', port=None): Read timed out.",
        "connection-timeout": "HTTPSConnectionPool(host='index.example', port=443): Read timed out.",
    },
    "too many requests": {
        "registry-rate-limit": "toomanyrequests: You have reached your pull rate limit",
        "index-throttled": "ERROR: HTTP error 429 while getting https://index.example/x.whl",
    },
}
PAIRS = [(code, text) for group in ALIKE.values() for code, text in group.items()]


@pytest.mark.parametrize(("code", "text"), PAIRS, ids=[code for code, _ in PAIRS])
def test_look_alikes_are_told_apart(code: str, text: str) -> None:
    told = explain(text)
    causes = [cause.fit.rule.name for cause in told.causes] or [fit.rule.name for fit in told.noise]
    assert causes[0] == code
    [group] = [group for group in ALIKE.values() if group.get(code) == text]
    assert not (set(causes) & set(group)) - {code}


@pytest.mark.parametrize("log", [log for log in LOGS if "leads" in log], ids=lambda log: log["name"])
def test_a_whole_output(log: dict[str, Any]) -> None:
    assert explain(log["text"]).causes[0].fit.rule.name == log["leads"]


@pytest.mark.parametrize("log", [log for log in LOGS if "outcome" in log], ids=lambda log: log["name"])
def test_an_output_without_a_known_cause(log: dict[str, Any]) -> None:
    told = explain(log["text"])
    assert told.causes == () and told.outcome == log["outcome"]
