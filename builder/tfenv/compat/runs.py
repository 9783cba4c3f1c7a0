"""The quick answer for the matrix page: does a release with these libraries run on a GPU and driver?"""

from __future__ import annotations

from tfenv import gpus
from tfenv.facts import Compiled

from . import hardware
from .libraries import LIBRARY_RULES
from .model import Finding, Query, Verdict, verdict
from .rules import Rule
from .subject import Subject

#: What depends on the GPU and the driver, in the order in which a reader wants to know it.
HARDWARE_RULES: tuple[Rule, ...] = (
    Rule("gpu-unknown", hardware.gpu_unknown),
    Rule("gpu-code-not-read", hardware.code_not_read),
    Rule("gpu-arch-unsupported-by-wheel", hardware.no_code_in_wheel),
    Rule("gpu-not-in-libraries", hardware.no_code_in_libraries),
    Rule("libraries-older-than-gpu", hardware.libraries_older_than_gpu),
    Rule("driver-older-than-gpu", hardware.driver_older_than_gpu),
    Rule("driver-drops-gpu", hardware.driver_drops_gpu),
    Rule("driver-too-old", hardware.driver_too_old),
    Rule("driver-too-old-for-ptx", hardware.driver_too_old_for_ptx),
    Rule("driver-not-judged", hardware.driver_not_judged),
    Rule("jit-at-first-use", hardware.jit_at_first_use),
    Rule("nccl-without-code", hardware.nccl_without_code),
    Rule("xla-cannot-target-gpu", hardware.xla_cannot_target),
    Rule("driver-branch-ended", hardware.driver_branch_ended),
)


def runs(
    facts: Compiled, cuda: str, cudnn: str, gpu: str | None, driver: str | None, kind: str = ""
) -> Verdict:
    """Whether a release runs with libraries, on a GPU, with a driver.

    Args:
        cuda, cudnn: versions of the libraries in the image, e.g. ``11.8`` and ``8.6``.
        gpu: compute capability, e.g. ``9.0``; None leaves it open, and with it most limits.
        driver: its version, e.g. ``535.104.05``; None leaves it open.
        kind: ``data-centre`` makes cuda-compat a remedy for an old driver.
    """
    subject = Subject(
        query=Query(tensorflow=facts.tensorflow, cuda=cuda, cudnn=cudnn, driver=driver or ""),
        release=facts.tensorflow,
        facts=facts,
        cuda=cuda,
        cudnn=cudnn,
        gpu=gpus.of_capability(gpu, kind=kind) if gpu else None,
        gpu_name=gpu or "",
    )
    found: list[Finding] = []
    for rule in (*LIBRARY_RULES, *HARDWARE_RULES):
        found.extend(rule.check(subject))
    return verdict(found)
