"""What may be wrong in here: one function a cause, in one table, from the bottom up."""

from __future__ import annotations

from typing import Callable, Dict, Iterable, List, Optional, Tuple

from . import of_container, of_driver, of_image
from .finding import Facts, Finding, count, cuda, found

#: Error of cuInit -> (title, cause, remedy).
_ERRORS: Dict[int, Tuple[str, str, str]] = {
    2: (
        "the GPU has no memory left to start CUDA",
        "Other processes have taken it.",
        "nvidia-smi on the host shows which; in another TensorFlow: TF_FORCE_GPU_ALLOW_GROWTH=true",
    ),
    35: (
        "the driver is too old for this CUDA",
        "The host's driver does not serve the CUDA of this image.",
        "update the driver on the host, or take a cell with an older CUDA: tfenv explain "
        "--driver VERSION --gpu NAME",
    ),
    46: (
        "the GPU is busy or may not be used",
        "Its compute mode is exclusive or prohibited, or MIG is being changed.",
        "on the host: nvidia-smi -q -d COMPUTE; sudo nvidia-smi -c DEFAULT",
    ),
    100: (
        "CUDA finds no device that it may use",
        "The driver answers, and gives no GPU: MIG is on without an instance, the GPU was "
        "lost, or was not given to "
        "this container.",
        "on the host: nvidia-smi -L and sudo dmesg | grep -i xid; here: nvidia-smi -L",
    ),
    101: (
        "a GPU is asked for that is not there",
        "CUDA_VISIBLE_DEVICES or the program names a number that does not exist.",
        "unset CUDA_VISIBLE_DEVICES; GPUs are numbered from 0 in here",
    ),
    802: (
        "the NVLink fabric is not ready",
        "On NVSwitch systems CUDA waits for Fabric Manager, which runs on the host.",
        "on the host: sudo systemctl start nvidia-fabricmanager (of exactly the driver's version)",
    ),
    803: (
        "libcuda and the kernel module are of different drivers",
        "The host was updated without a reboot, or the image holds a libcuda of its own.",
        "on the host: nvidia-smi; if that fails, reboot; else remove libcuda and cuda-compat from the image",
    ),
    804: (
        "forward compatibility does not work with this GPU",
        "The package cuda-compat in the image is for data-centre GPUs.",
        "remove cuda-compat from the image, and update the host's driver",
    ),
    999: (
        "CUDA fails with 'unknown error' (999)",
        "Mostly /dev/nvidia-uvm cannot be used, or the machine was suspended and the driver did not wake up.",
        "on the host: sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm, or reboot",
    ),
}


def cuda_error(of: Facts) -> Optional[Finding]:
    """cuInit fails, and none of the above says why."""
    error = cuda(of).get("error")
    if error in (0, None) or any(rule(of) for rule in _BEFORE_CUDA_ERROR):
        return None
    title, cause, remedy = _ERRORS.get(
        int(error),
        (
            f"CUDA does not start: error {error}",
            "The driver's library says so.",
            "look the number up in the link below",
        ),
    )
    return found(
        "broken", title, cause, remedy, "https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html"
    )


Rule = Callable[[Facts], Optional[Finding]]

RULES: Tuple[Tuple[str, Rule], ...] = (
    ("musl-base", of_image.musl),
    ("no-gpu-asked-for", of_container.hidden_by_name),
    ("mig-legacy-device-id", of_container.old_mig_id),
    ("container-without-gpu", of_container.no_gpu_given),
    ("driver-hangs", of_driver.driver_hangs),
    ("devices-without-rights", of_container.no_rights),
    ("driver-libs-baked-into-image", of_driver.baked_in_driver),
    ("host-driver-needs-reboot", of_driver.host_mismatch),
    ("cuda-compat-shadows-driver", of_driver.compat_shadows),
    ("cuda-stub-loaded", of_driver.stub),
    ("driver-library-missing", of_container.no_compute),
    ("cuda-visible-devices-invalid", of_container.visible_devices),
    ("uvm-missing", of_container.uvm),
    ("cuda-error", cuda_error),
    ("cpu-build", of_image.cpu_build),
    ("tensorflow-sees-no-gpu", of_image.tensorflow_differs),
    ("host-env-leak-possible", of_image.foreign_packages),
    ("two-cudas", of_image.two_cudas),
    ("no-place-to-write", of_image.home),
    ("shared-memory-small", of_image.shared_memory),
    ("fewer-gpus-than-host", of_image.fewer_than_host),
)
_BEFORE_CUDA_ERROR = (
    of_container.old_mig_id,
    of_container.no_rights,
    of_driver.baked_in_driver,
    of_driver.host_mismatch,
    of_driver.compat_shadows,
    of_driver.stub,
    of_container.visible_devices,
    of_container.uvm,
)
_GRADES = ("broken", "absent", "limit", "note")


def judge(facts: Facts, rules: Iterable[Tuple[str, Rule]] = RULES) -> List[Finding]:
    """What was found, what is broken first, then in the order of the table."""
    told = []
    for name, rule in rules:
        one = rule(facts)
        if one:
            told.append({"id": name, **one})
    return sorted(told, key=lambda one: _GRADES.index(one["grade"]))


def code(facts: Facts, findings: List[Finding]) -> int:
    """Exit code: 0 ready, 1 broken, 4 no GPU, 3 it could not be told."""
    grades = {one["grade"] for one in findings}
    if "broken" in grades:
        return 1
    if "absent" in grades:
        return 4
    return 0 if count(facts) else 3
