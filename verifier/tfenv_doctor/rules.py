"""What may be wrong in here: one function a cause, in one table, from the bottom up."""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

Facts = Dict[str, Any]
Finding = Dict[str, str]
_DOCS = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html"


def found(grade: str, title: str, cause: str, remedy: str, source: str) -> Finding:
    """A finding: grade is ``broken``, ``absent``, ``limit`` or ``note``."""
    return {"grade": grade, "title": title, "cause": cause, "remedy": remedy, "source": source}


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


def hidden_by_name(of: Facts) -> Optional[Finding]:
    """NVIDIA_VISIBLE_DEVICES says none."""
    value = of["env"].get("NVIDIA_VISIBLE_DEVICES")
    if of["nodes"] or value is None or value.strip() not in ("", "void", "none"):
        return None
    return found(
        "broken",
        f"NVIDIA_VISIBLE_DEVICES is '{value}': this container asked for no GPU",
        "The runtime gives a container the GPUs that this variable names: none here.",
        "start it with --gpus all, or with NVIDIA_VISIBLE_DEVICES=all",
        _DOCS,
    )


def old_mig_id(of: Facts) -> Optional[Finding]:
    """MIG-GPU-... ids of drivers before 470."""
    value = of["env"].get("NVIDIA_VISIBLE_DEVICES", "") + of["env"].get("CUDA_VISIBLE_DEVICES", "")
    if "MIG-GPU-" not in value.upper() or _count(of):
        return None
    there = re.findall(r"UUID: (MIG-[0-9A-Za-z/-]+)", of["smi"])
    return found(
        "broken",
        "a MIG device is asked for by an id of the old form (MIG-GPU-.../gi/ci)",
        "Drivers from 470 on name MIG devices MIG-<uuid>.",
        "take the id that nvidia-smi -L shows" + (f": {', '.join(there[:8])}" if there else " on the host"),
        "https://github.com/NVIDIA/nvidia-container-toolkit/issues/203",
    )


def no_gpu_given(of: Facts) -> Optional[Finding]:
    """No node, no library: the container was started without a GPU, or there is none."""
    if of["nodes"] or _cuda(of).get("missing") is None or hidden_by_name(of):
        return None
    host = of.get("host", {})
    if of["module"] or host.get("gpus") or of["bus"]:
        unset = "NVIDIA_VISIBLE_DEVICES" not in of["env"]
        driver = of["module"] or host.get("driver", "")
        seen = (
            f"the host has a driver, {driver}"
            if driver
            else "the host has an NVIDIA GPU, and no driver is loaded"
        )
        if not driver:
            return found(
                "broken",
                "the host has an NVIDIA GPU, and no NVIDIA driver is loaded there",
                "The driver is the host's (or the VM's), never the image's: CUDA in the image cannot "
                "replace it.",
                "on the host: install the driver, see that nvidia-smi works there, then start this "
                "again with --gpus all",
                "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/index.html",
            )
        return found(
            "broken",
            "this container was started without a GPU",
            f"{seen[:1].upper()}{seen[1:]}; in here there is neither a device node nor libcuda"
            + (
                ", and NVIDIA_VISIBLE_DEVICES is not set, by which some runtimes (enroot, older "
                "Docker) decide."
                if unset
                else "."
            ),
            "start it with --gpus all (Podman: --device nvidia.com/gpu=all; Singularity: --nv; "
            "enroot and others: "
            "NVIDIA_VISIBLE_DEVICES=all and NVIDIA_DRIVER_CAPABILITIES=compute,utility)",
            _DOCS,
        )
    why = (
        "no NVIDIA GPU is on the bus"
        if of["bus"] == 0
        else "nothing of an NVIDIA GPU or driver is seen from here"
    )
    return found(
        "absent",
        "there is no GPU in here",
        f"{why[:1].upper()}{why[1:]}: the machine (or the VM) has none, or its driver is not loaded.",
        "on the host: nvidia-smi; if it works there, start this container with --gpus all",
        "https://github.com/apptainer/singularity/issues/776",
    )


def no_rights(of: Facts) -> Optional[Finding]:
    """Device nodes that cannot be opened."""
    refused = {path: why for path, why in of["nodes"].items() if why in ("EPERM", "EACCES")}
    if not refused or _count(of):
        return None
    names = ", ".join(sorted(refused))
    if "EPERM" in refused.values():
        return found(
            "broken",
            f"the device files are here, and this container has no right to use them: {names}",
            "Its control group forbids it: 'systemctl daemon-reload' on the host took the devices "
            "away, or the toolkit "
            "runs with no-cgroups = true under an engine that is not rootless. nvidia-smi says "
            "'Unknown Error'.",
            "start the container anew; for good: CDI (--device nvidia.com/gpu=all), or no-cgroups = false in "
            "/etc/nvidia-container-runtime/config.toml on the host",
            "https://github.com/NVIDIA/nvidia-container-toolkit/issues/48",
        )
    return found(
        "broken",
        f"user {of['user'].get('uid')} may not open {names}",
        "Their mode is for a group only, that this user is not in. As root the GPU is seen.",
        "docker run --group-add with the number of the group that ls -ln /dev/nvidia0 shows",
        _DOCS,
    )


def baked_in_driver(of: Facts) -> Optional[Finding]:
    """The image holds driver libraries of another version than the host's module."""
    error = (of["driver"].get("nvml") or {}).get("error")
    host = of["module"] or of.get("host", {}).get("driver", "")
    foreign = [one for one in of["libraries"] if _origin(one, of) == "image"]
    other = sorted({one["version"] for one in foreign if one["version"] and host and one["version"] != host})
    if not other or (_count(of) and error in (0, None)):
        return None
    if compat_shadows(of):
        return None
    return found(
        "broken",
        f"the image holds libraries of NVIDIA driver {', '.join(other)}, and the host runs {host}",
        "Packages (libnvidia-..., nvidia-driver-..., nvidia-opencl-dev) put them into the "
        "image, and they win over those "
        f"of the host: {', '.join(one['end'] for one in foreign if one['version'] in other)[:300]}. "
        "'Driver/library version mismatch' in the container, while nvidia-smi works on the host.",
        "remove the driver's packages from the image: libnvidia-* and nvidia-driver-* have no place in it",
        "https://github.com/k4yt3x/video2x/issues/1226",
    )


def host_mismatch(of: Facts) -> Optional[Finding]:
    """The injected libraries are not of the module that runs: the host itself is in between."""
    error = (of["driver"].get("nvml") or {}).get("error")
    ours = sorted(
        {one["version"] for one in of["libraries"] if _origin(one, of) == "host" and one["version"]}
    )
    wrong = [version for version in ours if of["module"] and version != of["module"]]
    if not wrong or (error != 18 and _count(of)) or baked_in_driver(of):
        return None
    return found(
        "broken",
        f"the host's driver was updated: its libraries are {', '.join(wrong)}, its module "
        f"still {of['module']}",
        "nvidia-smi fails on the host too: the old kernel module is loaded.",
        "reboot the host; nothing in the image is to be changed",
        "https://github.com/NVIDIA/nvidia-container-toolkit/issues/394",
    )


def compat_shadows(of: Facts) -> Optional[Finding]:
    """A forward-compatibility libcuda is loaded, and does not work."""
    loaded = [path for path in of["driver"].get("files", ()) if "compat" in path and "libcuda" in path]
    error = _cuda(of).get("error")
    if not loaded or error in (0, None):
        return None
    version = re.search(r"\.so\.(\d{3}\.\d+(?:\.\d+)?)$", loaded[0])
    host = of["module"] or of.get("host", {}).get("driver", "")
    named = version.group(1) if version else "of another version"
    return found(
        "broken",
        f"libcuda {named} of the package cuda-compat hides the host's driver{f', {host}' if host else ''}",
        f"{loaded[0]} is loaded in the place of the driver's own library, and gives error "
        f"{error}: forward compatibility "
        "is for data-centre GPUs, and for drivers that are older than it.",
        "remove cuda-compat from the image (or its folder from LD_LIBRARY_PATH and "
        "/etc/ld.so.conf.d), or update the driver",
        "https://github.com/tensorflow/tensorflow/issues/48722",
    )


def stub(of: Facts) -> Optional[Finding]:
    """CUDA's stub library."""
    if _cuda(of).get("error") != 34 and "stubs" not in of["env"].get("LD_LIBRARY_PATH", ""):
        return None
    if _count(of):
        return None
    return found(
        "broken",
        "programs find CUDA's stub in the place of the driver: libcuda that does nothing",
        "The folder .../stubs is on LD_LIBRARY_PATH. It is for linking alone.",
        "take .../stubs out of LD_LIBRARY_PATH",
        "https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html",
    )


def no_compute(of: Facts) -> Optional[Finding]:
    """The driver's libraries for computing were not asked for."""
    asked = of["env"].get("NVIDIA_DRIVER_CAPABILITIES")
    if _cuda(of).get("missing") is None or not of["nodes"]:
        return None
    if asked is not None and not {"compute", "all"} & {word.strip() for word in asked.split(",")}:
        return found(
            "broken",
            f"NVIDIA_DRIVER_CAPABILITIES is '{asked}': libcuda was not asked for",
            "nvidia-smi works with 'utility' alone; TensorFlow needs 'compute'.",
            "set NVIDIA_DRIVER_CAPABILITIES=compute,utility, in the image or with docker run -e",
            _DOCS,
        )
    return found(
        "broken",
        "the GPU's device nodes are here, and the driver's libcuda.so.1 is not",
        "The nodes were given by hand (--device /dev/nvidia0), or the runtime could not bring the libraries"
        + (": under WSL 2 they are in /usr/lib/wsl/lib." if of["wsl"] else "."),
        "start the container with --gpus all, not with --device /dev/nvidia*"
        + (
            "; under WSL 2 add -v /usr/lib/wsl:/usr/lib/wsl and LD_LIBRARY_PATH=/usr/lib/wsl/lib"
            if of["wsl"]
            else ""
        ),
        _DOCS,
    )


def visible_devices(of: Facts) -> Optional[Finding]:
    """CUDA_VISIBLE_DEVICES hides all GPUs."""
    value = of["env"].get("CUDA_VISIBLE_DEVICES")
    if value is None or _count(of) or "MIG-GPU-" in value.upper():
        return None
    text = value.strip()
    if text in ("", "-1", "none", "NoDevFiles"):
        return found(
            "broken",
            f"CUDA_VISIBLE_DEVICES is '{value}': every GPU is hidden, on purpose it seems",
            "An empty value or -1 is the usual way to compute on the CPU.",
            "unset CUDA_VISIBLE_DEVICES",
            "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html",
        )
    parts = [part.strip() for part in text.split(",")]
    wrong = [part for part in parts if not part.isdigit() and not part.upper().startswith(("GPU-", "MIG-"))]
    beyond = [part for part in parts if part.isdigit() and of["gpu_nodes"] and int(part) >= of["gpu_nodes"]]
    if not wrong and not (beyond and beyond[0] == parts[0]):
        return None
    return found(
        "broken",
        f"CUDA_VISIBLE_DEVICES is '{value[:80]}', which names no GPU in here",
        "CUDA takes numbers from 0 on and ids (GPU-..., MIG-...), and hides all from the "
        "first that it does not know. In "
        "a container the GPUs are numbered anew from 0.",
        "unset it, or set it to a number that nvidia-smi -L shows in here",
        "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html",
    )


def uvm(of: Facts) -> Optional[Finding]:
    """No /dev/nvidia-uvm."""
    if "/dev/nvidiactl" not in of["nodes"] or "/dev/nvidia-uvm" in of["nodes"] or of["wsl"] or _count(of):
        return None
    return found(
        "broken",
        "/dev/nvidia-uvm is missing in here: CUDA cannot start, though nvidia-smi works",
        "The module nvidia-uvm was not loaded on the host when the container was started, or when its CDI "
        "specification was made.",
        "on the host: sudo nvidia-modprobe -u -c=0 (and nvidia-ctk cdi generate, with CDI), "
        "then start the container anew",
        "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html",
    )


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
    error = _cuda(of).get("error")
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


def driver_hangs(of: Facts) -> Optional[Finding]:
    """CUDA does not answer, or ends the program."""
    if of["driver"].get("hangs"):
        how = "does not answer within 30 seconds"
    elif "crashed" in of["driver"]:
        how = f"ended the program that asked it (status {of['driver']['crashed']})"
    else:
        return None
    return found(
        "broken",
        f"the driver {how}",
        "A GPU that fell off the bus, or a driver that is broken.",
        "on the host: nvidia-smi, sudo dmesg | grep -i xid; reboot",
        "https://docs.nvidia.com/deploy/xid-errors/index.html",
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
    if not host.isdigit() or not _count(of) or _count(of) >= int(host) or "UUID: MIG-" in of["smi"]:
        return None
    return found(
        "note",
        f"{_count(of)} of the host's {host} GPUs are in here",
        "The others were not given to this container, or are hidden by CUDA_VISIBLE_DEVICES.",
        "--gpus all gives all of them",
        _DOCS,
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
    if not _count(of) or deep.get("gpus", 0) >= 1:
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


Rule = Callable[[Facts], Optional[Finding]]

RULES: Tuple[Tuple[str, Rule], ...] = (
    ("musl-base", musl),
    ("no-gpu-asked-for", hidden_by_name),
    ("mig-legacy-device-id", old_mig_id),
    ("container-without-gpu", no_gpu_given),
    ("driver-hangs", driver_hangs),
    ("devices-without-rights", no_rights),
    ("driver-libs-baked-into-image", baked_in_driver),
    ("host-driver-needs-reboot", host_mismatch),
    ("cuda-compat-shadows-driver", compat_shadows),
    ("cuda-stub-loaded", stub),
    ("driver-library-missing", no_compute),
    ("cuda-visible-devices-invalid", visible_devices),
    ("uvm-missing", uvm),
    ("cuda-error", cuda_error),
    ("cpu-build", cpu_build),
    ("tensorflow-sees-no-gpu", tensorflow_differs),
    ("host-env-leak-possible", foreign_packages),
    ("two-cudas", two_cudas),
    ("no-place-to-write", home),
    ("shared-memory-small", shared_memory),
    ("fewer-gpus-than-host", fewer_than_host),
)
_BEFORE_CUDA_ERROR = (
    old_mig_id,
    no_rights,
    baked_in_driver,
    host_mismatch,
    compat_shadows,
    stub,
    visible_devices,
    uvm,
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
    return 0 if _count(facts) else 3


def _cuda(of: Facts) -> Dict[str, Any]:
    return of["driver"].get("cuda") or {}


def _count(of: Facts) -> int:
    return int(_cuda(of).get("count") or 0)


def _origin(library: Dict[str, str], of: Facts) -> str:
    """Whose a driver library is: ``host`` (the runtime put it in), ``compat``, ``wsl``, or the ``image``."""
    if "/compat" in library["end"]:
        return "compat"
    if "/wsl/" in library["end"]:
        return "wsl"
    mounted = any(path in (library["end"], library["path"]) for path in of["injected"])
    return "host" if mounted or "singularity" in library["path"] else "image"
