"""The quick answer for the matrix page: does a release with these libraries run on a GPU and driver?"""

from __future__ import annotations

from tfenv import gpus
from tfenv.facts import Compiled

from .driver import DRIVER_RULES
from .gpu import GPU_RULES
from .libraries import LIBRARY_RULES
from .model import Finding, Query, Verdict, verdict
from .releases import aarch64
from .subject import Subject


def runs(
    facts: Compiled,
    cuda: str,
    cudnn: str,
    gpu: str | None,
    driver: str | None,
    kind: str = "",
    host: str | None = None,
) -> Verdict:
    """Whether a release runs with libraries, on a GPU, with a driver.

    Args:
        cuda, cudnn: versions of the libraries in the image, e.g. ``11.8`` and ``8.6``.
        gpu: compute capability, e.g. ``9.0``; None leaves it open, and with it most limits.
        driver: its version, e.g. ``535.104.05``; None leaves it open.
        kind: ``data-centre`` makes cuda-compat a remedy for an old driver.
        host: the only platform that the GPU is found on, as of ``gpus.of_capability``.
    """
    subject = Subject(
        query=Query(tensorflow=facts.tensorflow, cuda=cuda, cudnn=cudnn, driver=driver or ""),
        release=facts.tensorflow,
        facts=facts,
        cuda=cuda,
        cudnn=cudnn,
        gpu=gpus.of_capability(gpu, kind=kind, host=host) if gpu else None,
        gpu_name=gpu or "",
    )
    found: list[Finding] = []
    for check in (aarch64, *(rule.check for rule in (*LIBRARY_RULES, *GPU_RULES, *DRIVER_RULES))):
        found.extend(check(subject))
    return verdict(found)
