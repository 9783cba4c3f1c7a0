"""A matrix of many releases, with made-up proofs and answers, and the page that it gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tfenv.model import Base, Cell, CudaSet, Matrix, Row
from tfenv.page import Answer, Gpu, Judge, Page, Proof, Standing, collect
from tfenv.versions import minor, order

RELEASES = (
    *("2.4.4", "2.5.3", "2.6.5", "2.7.4", "2.8.4", "2.9.3", "2.10.1", "2.11.1", "2.12.1", "2.13.1", "2.14.1"),
    *("2.15.0.post1", "2.15.1", "2.16.1", "2.16.2", "2.17.1", "2.18.1", "2.19.1", "2.20.0", "2.21.0"),
    "2.22.0rc0",
)
PYTHONS = ("3.9", "3.10", "3.11", "3.12")
REFUSED = "3.12"
BASES = ("debian11", "debian12", "debian13")
GPUS = (
    Gpu(compute_capability="6.1", architecture="Pascal", kind="geforce", names=("GTX 1080",)),
    Gpu(compute_capability="6.1", architecture="Pascal", kind="data-centre", names=("P4",)),
    Gpu(compute_capability="8.0", architecture="Ampere", names=("A100",)),
    Gpu(compute_capability="9.0", architecture="Hopper", names=("H100", "H200")),
    Gpu(compute_capability="12.0", architecture="Blackwell", names=("RTX 5090",)),
)
CAPABILITY = {"NVIDIA H200": "9.0", "NVIDIA A100": "8.0"}
DRIVERS = ("450.80.02", "525.60.13", "530.30.02", "535.54.03", "570.26", "590.44.01")
DIGEST = "sha256:63599d241bbfe4b6e4eba1c52c757af9bf2d88313de1ad95f5fbaecad80df53d"
JIT = "Kernels are compiled at first use: there is no machine code for this GPU."
NO_CODE = "It has no code for this GPU."
PASCAL = "The driver no longer serves this GPU: its last branch is 580."


def matrix() -> Matrix:
    """All releases x Pythons x bases; Python 3.12 is refused everywhere."""
    cuda_set = CudaSet(cuda="12.2", cudnn="8.9", epoch=0)
    bases = tuple(Base(name=name, kind="debian") for name in BASES)
    rows = tuple(
        Row(
            tensorflow=release,
            pythons=PYTHONS,
            bases=BASES,
            default_base="debian12",
            default_python="3.11",
            exclude_newer="2024-03-20T00:00:00Z",
            requirements=(f"tensorflow=={release}",),
        )
        for release in RELEASES
    )
    cells = tuple(
        Cell(row=row, python=python, base=base, cuda_set=cuda_set, cuda_from="wheels")
        for row in rows
        for base in bases
        for python in PYTHONS
    )
    return Matrix(
        repository="tfenv",
        cells=tuple(cell for cell in cells if cell.python != REFUSED),
        refused=tuple(
            (
                cell.name,
                f"TensorFlow {cell.row.tensorflow} has no wheel for Python {REFUSED}, only for <others>",
            )
            for cell in cells
            if cell.python == REFUSED
        ),
        bases=bases,
        rows=rows,
    )


def judge(cell: Cell, gpu: Gpu | None, driver: str | None) -> Answer:
    """Made up: an old driver, a GPU that its driver left behind, PTX for the newest, a limit before 2.8."""
    capability = gpu.compute_capability if gpu else None
    limits = ["The libraries are newer than those it was compiled for."] if _before(cell, "2.8") else []
    if driver and order(driver) < order("525.60.13"):
        return Answer(
            state="refused",
            sentences=("It needs driver 525.60.13 or newer.",),
            remedies=(f"install a driver{', or cuda-compat' if gpu and gpu.kind == 'data-centre' else ''}",),
        )
    if capability == "12.0" and cell.row.tensorflow == "2.4.4":
        return Answer(state="refused", sentences=(NO_CODE,))
    if capability == "12.0" and cell.row.tensorflow == "2.22.0rc0":
        return Answer(state="unknown", sentences=("Nobody has read its wheel.",))
    if capability and order(capability) >= order("9.0"):
        if driver and order(driver) < order("530.30.02"):
            return Answer(state="refused", sentences=("It needs driver 530.30.02 or newer on this GPU.",))
        limits.insert(0, JIT)
    if gpu == GPUS[0] and driver and order(driver) >= order("590"):
        return Answer(state="refused", sentences=(PASCAL,))
    return Answer(state="limited" if limits else "runs", sentences=tuple(limits))


def _before(cell: Cell, release: str) -> bool:
    return order(minor(cell.row.tensorflow)) < order(release)


def proof(verdict: str = "pass", gpu: str = "NVIDIA H200", driver: str = "580.159.04") -> Proof:
    """A report of the full suite."""
    return Proof(
        verdict=verdict,  # type: ignore[arg-type]
        suite="full",
        gpus=gpu,
        names=(gpu,) if gpu else (),
        driver=driver if gpu else "",
        day="2026-11-30",
        failed=("nccl",) if verdict == "fail" else (),
        reason="no GPU" if verdict == "unverified" else "",
    )


def standing(cell: Cell) -> Standing:
    """Made up: every kind there is."""
    if (cell.row.tensorflow, cell.python, cell.base.name) == ("2.15.1", "3.11", "debian12"):
        return Standing(kind="verified", digest=DIGEST, proofs=(proof(), proof("unverified", "")))
    kinds = {
        "2.20.0": Standing(kind="verified", digest=DIGEST, proofs=(proof(gpu="NVIDIA A100"),)),
        "2.19.1": Standing(kind="failed", digest=DIGEST, proofs=(proof("fail", "NVIDIA A100"),)),
        "2.18.1": Standing(kind="checked", digest=DIGEST, proofs=(proof("unverified", ""),)),
        "2.17.1": Standing(kind="built", digest=DIGEST),
        "2.16.2": Standing(kind="locked", note="The digest that is recorded is of another lock."),
    }
    return kinds.get(cell.row.tensorflow, Standing(kind="open"))


def page(*, judge: Judge = judge, gpus: tuple[Gpu, ...] = GPUS, **changes: Any) -> Page:
    """The page of the made-up matrix, with some parts of it changed."""
    return collect(
        replace(matrix(), **changes),
        judge,
        gpus=gpus,
        drivers=DRIVERS,
        capability=CAPABILITY.get,
        standing=standing,
        tags=lambda cell: (cell.name, f"{cell.row.tensorflow}-py{cell.python}-{cell.base.name}"),
        about=lambda release: (f"TensorFlow {release} was compiled for CUDA 12.2 and cuDNN 8.9.4.",),
    )
