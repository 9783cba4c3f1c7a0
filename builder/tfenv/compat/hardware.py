"""Rules about the GPU and its driver."""

from __future__ import annotations

from collections.abc import Iterator

from tfenv import eol, gpus
from tfenv.errors import UsageError
from tfenv.facts import Floor, floors
from tfenv.gpus import Gpu
from tfenv.versions import is_final, major, minor, order

from . import kernels
from .data import read
from .model import Finding
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
        remedy = "give its compute capability: nvidia-smi --query-gpu=compute_cap --format=csv"
        remedy += f"; names that look like it: {', '.join(near)}" if near else ""
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
    who = f"{of.gpu.target} ({_who(of.gpu)})"
    remedy = "another TensorFlow release or build: neither another base image nor another CUDA adds kernels"
    how = of.facts.source.get("sass", "fatbin headers of the wheel")
    if found.stuck:
        message = (
            f"{wheel} has no machine code for {who}, and its PTX of {found.stuck.what} is for "
            f"sm_{(found.stuck.until or '').replace('.', '')}a alone, which no later GPU can load "
            "(CUDA_ERROR_INVALID_PTX, CUDA_ERROR_INVALID_HANDLE)"
        )
        how = kernels.source("arch_only_ptx")
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
                message=f"{name} has machine code for compute capabilities {lacks[0]} to {lacks[1]}, "
                f"none for {_who(of.gpu)}" + (": other ones that serve it are needed" if open_ else ""),
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
    # sm_89 runs the machine code of sm_86 and sm_80; nothing older runs on the first of a major version.
    new = of.gpu.capability.endswith(".0") and not _left_open(of, of.gpu)
    yield Finding(
        code="libraries-older-than-gpu",
        severity="refuse" if new else "limit",
        message=f"the libraries are of CUDA {cuda}, and {_who(of.gpu)} is known from CUDA "
        f"{of.gpu.first_cuda} on: "
        + ("they have no code for it" if of.gpu.capability.endswith(".0") else "they run older code on it"),
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
        message=f"TensorFlow {of.release} has {what} only as PTX for {_who(of.gpu)}: "
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
        f"for {_who(of.gpu)}, so NcclAllReduce, the default of MirroredStrategy, hangs",
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
        message=f"no XLA (jit_compile=True) on {_who(of.gpu)}: TensorFlow {of.release} was compiled for CUDA "
        f"{of.facts.cuda}, and its XLA cannot name {of.gpu.target}, which came with CUDA {of.gpu.xla_cuda}",
        remedy="leave jit_compile off: model.compile(..., jit_compile=False)",
        source="https://github.com/tensorflow/tensorflow/issues/111958",
    )


def driver_too_old(of: Subject) -> Iterator[Finding]:
    """The driver is older than the libraries need."""
    floor = _floor(of)
    if floor and floor.since == "0" and order(of.query.driver) < order(floor.driver):
        yield _too_old(
            of, floor, "driver-too-old", f"CUDA {major(of.libraries[0])} needs {floor.driver} or newer"
        )


def driver_too_old_for_ptx(of: Subject) -> Iterator[Finding]:
    """The driver cannot compile the PTX that the GPU depends on."""
    floor = _floor(of)
    if floor and floor.since != "0" and order(of.query.driver) < order(floor.driver):
        yield _too_old(
            of,
            floor,
            "driver-too-old-for-ptx",
            f"{_who(of.gpu)} has to have PTX compiled, for which the driver must be {floor.driver} or newer "
            f"({floor.why}; older ones: CUDA_ERROR_UNSUPPORTED_PTX_VERSION)",
        )


def driver_older_than_gpu(of: Subject) -> Iterator[Finding]:
    """The driver is of before the GPU."""
    if of.gpu and of.query.driver and of.gpu.first_driver:
        if order(of.query.driver) >= order(of.gpu.first_driver):
            return
        yield Finding(
            code="driver-older-than-gpu",
            severity="refuse",
            message=f"the driver {of.query.driver} does not know {_who(of.gpu)}: it needs "
            f"{of.gpu.first_driver} or newer",
            remedy=f"install the driver {of.gpu.first_driver} or newer on the host",
            source="https://docs.nvidia.com/deeplearning/cudnn/latest/support-matrix/",
        )


def driver_not_judged(of: Subject) -> Iterator[Finding]:
    """No table says which driver these libraries need."""
    if not of.facts or not of.query.driver or not of.libraries[0]:
        return
    try:
        floors(of.facts, of.libraries[0])
    except UsageError as error:
        yield Finding(
            code="driver-not-judged",
            severity="unknown",
            message=f"whether the driver {of.query.driver} will do is not known: {error.message}",
            remedy=error.remedy,
        )


def driver_drops_gpu(of: Subject) -> Iterator[Finding]:
    """The driver is of after the GPU's last branch."""
    if not of.gpu or not of.query.driver or not of.gpu.last_driver:
        return
    if _branch(of.query.driver) <= int(of.gpu.last_driver):
        return
    yield Finding(
        code="driver-drops-gpu",
        severity="refuse",
        message=f"the driver {of.query.driver} no longer supports {_who(of.gpu)}: "
        f"branch {of.gpu.last_driver} is the last for {of.gpu.architecture}",
        remedy=f"install a driver of branch {of.gpu.last_driver} on the host",
        source="NVIDIA's Unix graphics feature deprecation schedule",
    )


def driver_branch_ended(of: Subject) -> Iterator[Finding]:
    """The driver's branch gets no more fixes."""
    if not of.query.driver or not of.known:
        return
    branch = major(of.query.driver)
    if last := eol.ended("driver", branch, of.known.today):
        yield Finding(
            code="driver-branch-ended",
            severity="warn",
            message=f"driver branch {branch} ended on {last}: no more security fixes",
            remedy="move the host to a branch that is supported",
            source=eol.source("driver"),
        )


def _left_open(of: Subject, gpu: Gpu) -> bool:
    """Whether no libraries were named, and there are some with which the release runs on the GPU."""
    named = of.cuda or of.cudnn or of.source == "base"
    return bool(not named and of.facts and kernels.could_run(of.facts, gpu.capability))


def _floor(of: Subject) -> Floor | None:
    """The floor that holds for the GPU; for no GPU the lowest one."""
    cuda = of.libraries[0]
    if not of.facts or not of.query.driver or not cuda:
        return None
    capability = of.gpu.capability if of.gpu else "0"
    try:
        known = floors(of.facts, cuda)
    except UsageError:
        return None  # driver_not_judged says so
    return [floor for floor in known if order(floor.since) <= order(capability)][-1]


def _too_old(of: Subject, floor: Floor, code: str, why: str) -> Finding:
    table = read("drivers")["forward"]
    package = table["package"].format(major=major(floor.cuda), minor=floor.cuda.split(".")[1])
    source = table["source"]
    may = bool(of.gpu and of.gpu.kind in table["kinds"])
    image = of.image
    inside = bool(image and image.is_nvidia_cuda and image.cuda and order(image.cuda) >= order(floor.cuda))
    said = f"the driver {of.query.driver} is too old: {why}"
    remedy = f"install the driver {floor.driver} or newer on the host"
    if may and inside:
        message = f"{said}, unless the {package} of the base lifts it, as it can with data-centre GPUs"
        return Finding(code=code, severity="limit", message=message, remedy=remedy, source=source)
    if may or not of.gpu:
        remedy += f"; with data-centre GPUs only, the package {package} (or newer) in the image is a way out"
    return Finding(code=code, severity="refuse", message=said, remedy=remedy, source=source)


def _releases_for(gpu: Gpu, of: Subject) -> str:
    """The releases, the last of each minor one, that run on the GPU with libraries that serve them."""
    if not of.known:
        return ""
    last = {minor(release): release for release in of.known.releases if is_final(release)}
    fitting = [
        release for release in last.values() if kernels.could_run(of.known.compiled(release), gpu.capability)
    ]
    return ", ".join(fitting)


def _other_libraries(gpu: Gpu, library: str, lacks: tuple[str, str]) -> str:
    if order(gpu.capability) > order(lacks[1]):
        return f"libraries of CUDA {gpu.first_cuda} or newer, and a TensorFlow that they serve"
    older = "cuDNN 9.10.2 or older" if library == "cudnn" else "libraries of an older CUDA"
    return f"{older}, as long as they serve the release"


def _branch(driver: str) -> int:
    return int(major(driver)) // 5 * 5


def _who(gpu: Gpu | None) -> str:
    if gpu is None:
        return "the GPU"
    named = gpu.name if gpu.name != gpu.capability else gpu.architecture
    return f"{named}, compute capability {gpu.capability}"
