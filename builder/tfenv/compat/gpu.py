"""Rules about the GPU: its kernels in the wheel and in the libraries."""

from __future__ import annotations

from collections.abc import Iterator

from tfenv import gpus
from tfenv.gpus import Gpu
from tfenv.versions import is_final, major, minor, order

from . import kernels
from .model import Finding
from .rules import Rule
from .subject import Subject


def gpu_unknown(of: Subject) -> Iterator[Finding]:
    """The GPU's name is not known, or could mean different ones."""
    if not of.gpu_name or of.gpu:
        return
    if meant := gpus.ambiguous(of.gpu_name):
        message = f"'{of.gpu_name}' could be {', '.join(meant)}, which are of different compute capabilities"
        remedy = "give the whole name, as nvidia-smi -L does"
    else:
        message = f"the GPU '{of.gpu_name}' is not known, so nothing is said about it"
        near = gpus.near(of.gpu_name)
        remedy = f"known names that look like it: {', '.join(near)}; or " if near else ""
        remedy += (
            "give its compute capability, e.g. --gpu 8.6: nvidia-smi --query-gpu=compute_cap --format=csv"
        )
    yield Finding(
        code="gpu-unknown", severity="unknown", message=message, remedy=remedy, source=gpus.source()
    )


def code_not_read(of: Subject) -> Iterator[Finding]:
    """Nobody has read which GPUs the wheel has code for."""
    if of.facts and of.gpu and not of.facts.deep:
        yield Finding(
            code="gpu-code-not-read",
            severity="unknown",
            message=f"which GPUs TensorFlow {of.release} has code for was not read from its wheel",
            remedy=f"tfenv facts audit --deep {of.facts.tensorflow}",
        )


def no_code_in_wheel(of: Subject) -> Iterator[Finding]:
    """No kernel of the wheel can run on the GPU: too old, or too new with PTX that is tied to another one."""
    if not of.facts or not of.gpu or not of.facts.deep:
        return
    found = kernels.reach(of.facts, of.gpu.capability)
    if found.has_code:
        return
    wheel = f"the TensorFlow {of.release} wheel"
    who = f"{of.gpu.target} ({of.gpu.in_words})"
    remedy = "another TensorFlow release or build: neither another base image nor another CUDA adds kernels"
    how = of.facts.source.get("sass", "fatbin headers of the wheel")
    if found.unusable:
        message = (
            f"{wheel} has no machine code for {who}, and of {found.unusable.what} nothing that it can run: "
            f"{found.unusable.why} (CUDA_ERROR_INVALID_PTX, CUDA_ERROR_INVALID_HANDLE)"
        )
        how = of.facts.source.get("unusable", kernels.source("arch_only_ptx"))
    elif found.oldest:
        message = f"{wheel} has no code for {who}: its oldest is sm_{found.oldest.replace('.', '')}"
    else:
        message = f"{wheel} has neither machine code nor PTX for {who}"
    if better := _releases_for(of.gpu, of):
        remedy = f"{remedy}; with code for it: TensorFlow {better}"
    yield Finding(
        code="gpu-arch-unsupported-by-wheel", severity="refuse", message=message, remedy=remedy, source=how
    )


def no_code_in_libraries(of: Subject) -> Iterator[Finding]:
    """cuBLAS or cuDNN has no code for the GPU."""
    if not of.facts or not of.gpu:
        return
    cuda, cudnn = of.libraries
    asked: tuple[tuple[kernels.Library, str, str], ...] = (
        ("cublas", f"cuBLAS of CUDA {cuda}", cuda),
        ("cudnn", f"cuDNN {cudnn}", cudnn),
    )
    open_ = _left_open(of, of.gpu)
    for library, name, version in asked:
        if lacks := kernels.library_lacks(library, version, of.gpu.capability):
            yield Finding(
                code="gpu-not-in-libraries",
                severity="limit" if open_ else "refuse",
                message=f"{name} has machine code for compute capabilities {lacks.lowest} to "
                f"{lacks.highest}, "
                f"none for {of.gpu.in_words}" + (": other ones that serve it are needed" if open_ else ""),
                remedy=_other_libraries(of.gpu, library, lacks),
                source=kernels.source(library),
            )


def libraries_older_than_gpu(of: Subject) -> Iterator[Finding]:
    """The CUDA libraries are of before the GPU."""
    if not of.facts or not of.gpu or not of.libraries[0]:
        return
    cuda = of.libraries[0]
    if order(minor(cuda)) >= order(of.gpu.first_cuda) or list(no_code_in_libraries(of)):
        return
    # sm_89 runs the machine code of sm_86 and sm_80, if the libraries know those: no other major version's.
    family = gpus.of_capability(f"{major(of.gpu.capability)}.0") or of.gpu
    unknown = order(minor(cuda)) < order(family.first_cuda or of.gpu.first_cuda)
    new = unknown and not _left_open(of, of.gpu)
    yield Finding(
        code="libraries-older-than-gpu",
        severity="refuse" if new else "limit",
        message=f"the libraries are of CUDA {cuda}, and {of.gpu.in_words} is known from CUDA "
        f"{of.gpu.first_cuda} on: "
        + ("they have no code for it" if unknown else "they run older code on it"),
        remedy=f"libraries of CUDA {of.gpu.first_cuda} or newer, of the same major version as TensorFlow's",
        source="https://developer.nvidia.com/cuda-gpus; targets that ptxas of each CUDA knows",
    )


def jit_at_first_use(of: Subject) -> Iterator[Finding]:
    """Kernels that the driver has to compile at first use."""
    if not of.facts or not of.gpu or not of.facts.deep:
        return
    found = kernels.reach(of.facts, of.gpu.capability)
    if not found.has_code or not found.compiled_at_first_use:
        return
    time, how = kernels.jit_time(found.compiled_at_first_use)
    what = kernels.in_words(found.compiled_at_first_use)
    yield Finding(
        code="jit-at-first-use",
        severity="limit",
        message=f"TensorFlow {of.release} has {what} only as PTX for {of.gpu.in_words}: "
        f"the driver compiles them at first use. Expect {time}; kept in CUDA_CACHE_PATH, it is paid once",
        remedy="keep CUDA_CACHE_PATH on a volume, with CUDA_CACHE_MAXSIZE=4294967296",
        source=how,
    )


def nccl_without_code(of: Subject) -> Iterator[Finding]:
    """The NCCL that is linked in has no kernel for the GPU."""
    if not of.facts or not of.gpu or of.facts.nccl_how != "linked" or not of.facts.nccl_sass:
        return
    if any(kernels.runs_on(code, of.gpu.capability) for code in of.facts.nccl_sass):
        return
    yield Finding(
        code="nccl-without-code",
        severity="limit",
        message=f"with more than one GPU: the NCCL {of.facts.nccl} in TensorFlow {of.release} has no code "
        f"for {of.gpu.in_words}, so NcclAllReduce, the default of MirroredStrategy, does not work: "
        f"{kernels.nccl_seen()}",
        remedy="tf.distribute.MirroredStrategy(cross_device_ops=tf.distribute.HierarchicalCopyAllReduce())",
        source=kernels.source("nccl_hang"),
    )


def xla_cannot_target(of: Subject) -> Iterator[Finding]:
    """XLA writes PTX of the CUDA that TensorFlow was compiled for, which does not know the GPU."""
    if not of.facts or not of.gpu or not of.gpu.xla_cuda or order(of.facts.cuda) >= order(of.gpu.xla_cuda):
        return
    yield Finding(
        code="xla-cannot-target-gpu",
        severity="limit",
        message=f"no XLA (jit_compile=True) on {of.gpu.in_words}: TensorFlow {of.release} was compiled "
        f"for CUDA {of.facts.cuda}, and its XLA cannot name {of.gpu.target}, which came with CUDA "
        f"{of.gpu.xla_cuda}",
        remedy="leave jit_compile off: model.compile(..., jit_compile=False)",
        source="https://github.com/tensorflow/tensorflow/issues/111958",
    )


GPU_RULES: tuple[Rule, ...] = (
    Rule("gpu-unknown", gpu_unknown),
    Rule("gpu-code-not-read", code_not_read),
    Rule("gpu-arch-unsupported-by-wheel", no_code_in_wheel),
    Rule("gpu-not-in-libraries", no_code_in_libraries),
    Rule("libraries-older-than-gpu", libraries_older_than_gpu),
    Rule("jit-at-first-use", jit_at_first_use),
    Rule("nccl-without-code", nccl_without_code),
    Rule("xla-cannot-target-gpu", xla_cannot_target),
)


def _left_open(of: Subject, gpu: Gpu) -> bool:
    """Whether no libraries were named, and there are some with which the release runs on the GPU."""
    named = of.cuda or of.cudnn or of.source == "base"
    return bool(not named and of.facts and kernels.could_run(of.facts, gpu.capability))


def _releases_for(gpu: Gpu, of: Subject) -> str:
    """The releases, the last of each minor one, that run on the GPU with libraries that serve them."""
    if not of.known:
        return ""
    last = {minor(release): release for release in of.known.releases if is_final(release)}
    fitting = [
        release for release in last.values() if kernels.could_run(of.known.compiled(release), gpu.capability)
    ]
    return ", ".join(fitting)


def _other_libraries(gpu: Gpu, library: str, lacks: kernels.Lack) -> str:
    if order(gpu.capability) > order(lacks.highest):
        return f"libraries of CUDA {gpu.first_cuda} or newer, and a TensorFlow that they serve"
    name = "a cuDNN" if library == "cudnn" else "libraries of a CUDA"
    return f"{name} older than {lacks.since}, as long as it serves the release"
