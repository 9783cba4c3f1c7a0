"""Rules about the driver of the host."""

from __future__ import annotations

from collections.abc import Iterator

from tfenv import eol
from tfenv.errors import UsageError
from tfenv.factfiles import read
from tfenv.facts import Floor, floors
from tfenv.versions import major, order

from .model import Finding
from .rules import Rule
from .subject import Subject


def older_than_gpu(of: Subject) -> Iterator[Finding]:
    """The driver is of before the GPU."""
    if of.gpu and of.query.driver and of.gpu.first_driver:
        if not _older(of.query.driver, of.gpu.first_driver):
            return
        yield Finding(
            code="driver-older-than-gpu",
            severity="refuse",
            message=f"the driver {of.query.driver} does not know {of.gpu.in_words}: it needs "
            f"{of.gpu.first_driver} or newer",
            remedy=f"install the driver {of.gpu.first_driver} or newer on the host",
            source="https://docs.nvidia.com/deeplearning/cudnn/latest/support-matrix/",
        )


def drops_gpu(of: Subject) -> Iterator[Finding]:
    """The driver is of after the GPU's last branch."""
    if not of.gpu or not of.query.driver or not of.gpu.last_driver:
        return
    if _branch(of.query.driver) <= int(of.gpu.last_driver):
        return
    yield Finding(
        code="driver-drops-gpu",
        severity="refuse",
        message=f"the driver {of.query.driver} no longer supports {of.gpu.in_words}: "
        f"branch {of.gpu.last_driver} is the last for {of.gpu.architecture}",
        remedy=f"install a driver of branch {of.gpu.last_driver} on the host",
        source="NVIDIA's Unix graphics feature deprecation schedule",
    )


def too_old(of: Subject) -> Iterator[Finding]:
    """The driver is older than the libraries need."""
    floor = _floor(of)
    if floor and floor.since == "0" and _older(of.query.driver, floor.driver):
        yield _too_old(
            of, floor, "driver-too-old", f"CUDA {major(of.libraries[0])} needs {floor.driver} or newer"
        )


def too_old_for_ptx(of: Subject) -> Iterator[Finding]:
    """The driver cannot compile the PTX that the GPU depends on."""
    floor = _floor(of)
    if of.gpu and floor and floor.since != "0" and _older(of.query.driver, floor.driver):
        yield _too_old(
            of,
            floor,
            "driver-too-old-for-ptx",
            f"{of.gpu.in_words} has to have PTX compiled, for which the driver must be {floor.driver} or "
            f"newer ({floor.why}; older ones: CUDA_ERROR_UNSUPPORTED_PTX_VERSION)",
        )


def branch_alone(of: Subject) -> Iterator[Finding]:
    """Only the branch of the driver was named, and its first versions will not do."""
    driver, floor = of.query.driver, _floor(of)
    needed = max(
        (floor.driver if floor else "", (of.gpu.first_driver if of.gpu else "") or ""),
        key=lambda version: order(version or "0"),
    )
    if driver.isdecimal() and needed and major(needed) == driver and order(driver) < order(needed):
        yield Finding(
            code="driver-branch-alone",
            severity="limit",
            message=f"of driver branch {driver}, it must be {needed} or newer",
            remedy="see which it is: nvidia-smi --query-gpu=driver_version --format=csv",
        )


def not_judged(of: Subject) -> Iterator[Finding]:
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


def branch_ended(of: Subject) -> Iterator[Finding]:
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


DRIVER_RULES: tuple[Rule, ...] = (
    Rule("driver-older-than-gpu", older_than_gpu),
    Rule("driver-drops-gpu", drops_gpu),
    Rule("driver-too-old", too_old),
    Rule("driver-too-old-for-ptx", too_old_for_ptx),
    Rule("driver-branch-alone", branch_alone),
    Rule("driver-not-judged", not_judged),
    Rule("driver-branch-ended", branch_ended),
)


def _floor(of: Subject) -> Floor | None:
    """The floor that holds for the GPU, for no GPU the lowest one; None where its own is missed already."""
    cuda = of.libraries[0]
    if not of.facts or not of.query.driver or not cuda or list(older_than_gpu(of)):
        return None
    capability = of.gpu.capability if of.gpu else "0"
    try:
        known = floors(of.facts, cuda)
    except UsageError:
        return None  # not_judged says so
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
    if of.gpu and of.gpu.last_driver and int(of.gpu.last_driver) < int(major(floor.driver)):
        remedy = (
            f"no driver for {of.gpu.architecture} will do, {of.gpu.last_driver} is the last branch for it: "
            "take a release with an older CUDA, or another GPU"
        )
        return Finding(code=code, severity="refuse", message=said, remedy=remedy, source=source)
    if may and inside:
        message = f"{said}, unless the {package} of the base lifts it, as it can with data-centre GPUs"
        return Finding(code=code, severity="limit", message=message, remedy=remedy, source=source)
    if may or not of.gpu:
        remedy += f"; with data-centre GPUs only, the package {package} (or newer) in the image is a way out"
    return Finding(code=code, severity="refuse", message=said, remedy=remedy, source=source)


def _older(driver: str, needed: str) -> bool:
    """Whether a driver is older; of one that is named by its branch alone, the newest is meant."""
    if driver.isdecimal() and major(needed) == driver:
        return False
    return order(driver) < order(needed)


def _branch(driver: str) -> int:
    return int(major(driver)) // 5 * 5
