"""NVIDIA's driver: the module in the kernel, the one on disk, the libraries, the kernel's log."""

from __future__ import annotations

import re

from tfenv import factfiles
from tfenv.doctor.evidence import Evidence
from tfenv.engine.requirements import version_of

from .words import VERSION, find, listed, one_line, short_lines, yes

_LIBRARIES = re.compile(r"lib(?:cuda|nvidia-ml)\.so\.(\d{2,4}\.\d{2,4}(?:\.\d{1,4})?)")
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+)")
#: value -> what the kernel's log holds then.
_LOG = {
    "log_key_rejected": r"nvidia[^\n]*(?:key was rejected|required key not available"
    r"|Lockdown:[^\n]*unsigned module)"
    r"|Loading of (?:unsigned module|module with unavailable key) is rejected",
    "log_needs_open": r"NVRM:[^\n]*(?:requires use of the NVIDIA open kernel modules"
    r"|open kernel modules?[^\n]*required)",
    "log_unsupported": r"NVRM:[^\n]*(?:not supported by (?:the|open|NVIDIA)\b|supported through the NVIDIA"
    r"|\d\.xx Legacy drivers)",
    "log_init_failed": r"NVRM:[^\n]*(?:RmInitAdapter failed|rm_init_adapter failed)",
    "log_fallen": r"NVRM:[^\n]*fallen off the bus",
    "log_bar": r"NVRM: This PCI I/O region assigned to your NVIDIA device is invalid"
    r"|can't assign mem[^\n]*10de",
    "log_gsp": r"NVRM:[^\n]*(?:WPR2 already up|GSP RM heartbeat timed out"
    r"|GSP firmware[^\n]*(?:failed|not found|missing))",
    "log_power": r"NVRM: GPU[^\n]*(?:power cable|requires? (?:additional )?power)"
    r"|GPU does not have the necessary power",
}


def read(of: Evidence) -> dict[str, str]:
    """``module_*`` of the kernel's, ``disk_*`` of the one on disk, ``library_version``, ``log_*``."""
    text = of.file("/proc/driver/nvidia/version")
    modules = of.file("/proc/modules")
    loaded = bool(text) or bool(re.search(r"^nvidia ", modules, re.MULTILINE))
    running = (
        find(rf"Kernel Module[^\n]*?\s({VERSION})\b", text) or of.file("/sys/module/nvidia/version").strip()
    )
    info = of.command("modinfo nvidia")
    log = _log(of)
    xids = _XID.findall(log)
    library = _library(of)
    packages = _packages(of)
    known_modules = "/proc/modules" in of.files or bool(text)
    return {
        "module_loaded": yes(loaded) if known_modules else "",
        "module_version": running,
        "module_open": yes("Open Kernel Module" in text) if text else "",
        "module_on_disk": _on_disk(of),
        "disk_version": find(rf"^version:[ \t]*({VERSION})", info.out),
        "disk_open": yes("MIT" in find(r"^license:[ \t]*(.+)$", info.out)) if info.ok else "",
        "disk_signed": yes("sig_id:" in info.out or "signer:" in info.out) if info.ok else "",
        "library_version": library,
        "libraries": listed(_all_libraries(of)),
        "package_version": packages,
        "driver_installed": yes(library or packages or info.ok or loaded) if _looked(of) else "",
        "nouveau_loaded": yes(re.search(r"^nouveau ", modules, re.MULTILINE)),
        "dkms_here": _dkms(of),
        "dkms_state": one_line(find(r"^(nvidia.*)$", of.command("dkms status").out)),
        "headers_here": _headers(of),
        "secure_boot": _secure_boot(of),
        "kernel_log": yes(_log_readable(of)),
        "xids": ", ".join(dict.fromkeys(number for _, number in xids)),
        "xid_worst": _worst([int(number) for _, number in xids]),
        "xid_places": listed(list(dict.fromkeys(place for place, _ in xids))),
        **{name: yes(re.search(pattern, log, re.IGNORECASE)) for name, pattern in _LOG.items()},
        "legacy_branch": find(r"NVIDIA (\d{3})\.\w+ Legacy", log),
    }


def _log(of: Evidence) -> str:
    return "\n".join(
        short_lines(ran.out)
        for line, ran in of.commands.items()
        if line == "dmesg" or line.startswith("journalctl --dmesg")
    )


def _log_readable(of: Evidence) -> bool:
    return any(
        ran.ok and (ran.out or line == "dmesg")
        for line, ran in of.commands.items()
        if line == "dmesg" or line.startswith("journalctl --dmesg")
    )


def _looked(of: Evidence) -> bool:
    return bool(of.files or of.commands)


def _all_libraries(of: Evidence) -> list[str]:
    ends = [end for path, end in of.links.items() if "/libcuda.so" in path or "/libnvidia-ml.so" in path]
    names = [name for end in ends if "wsl" not in end for name in _LIBRARIES.findall(end)]
    return sorted(dict.fromkeys(names), key=version_of)


def _library(of: Evidence) -> str:
    """The version of the libcuda that programs find; where there are several, the newest."""
    return (_all_libraries(of) or [""])[-1]


def _packages(of: Evidence) -> str:
    installed = next((ran.out for line, ran in of.commands.items() if line.startswith("dpkg-query")), "")
    found = find(
        rf"^ii +(?:nvidia-driver\S*|nvidia-headless\S*|libnvidia-compute\S*|cuda-drivers\S*) \S*?({VERSION})",
        short_lines(installed),
    )
    rpm = short_lines(next((ran.out for line, ran in of.commands.items() if line.startswith("rpm -qa")), ""))
    return found or find(rf"^(?:nvidia-driver|kmod-nvidia|cuda-drivers)\S*?-({VERSION})-", rpm)


def _on_disk(of: Evidence) -> str:
    """Whether there is a module for the kernel that runs."""
    info = of.command("modinfo nvidia")
    if info.ok:
        return "yes"
    return (
        "no"
        if "not found" in info.err.lower() and info.there and info.err != "No such file or directory"
        else ""
    )


def _dkms(of: Evidence) -> str:
    """Whether DKMS has built the module for the kernel that runs; empty where DKMS has none at all."""
    told, kernel = of.command("dkms status"), of.system.get("kernel", "")
    rows = [line for line in told.out.splitlines() if line.startswith("nvidia")]
    if not rows or not kernel:
        return ""
    return yes(any(kernel in row and "installed" in row for row in rows))


def _headers(of: Evidence) -> str:
    installed = next((ran for line, ran in of.commands.items() if line.startswith("dpkg-query")), None)
    kernel = of.system.get("kernel", "")
    if installed is None or not installed.there or not kernel:
        return ""
    return yes(f"linux-headers-{kernel} " in installed.out)


def _secure_boot(of: Evidence) -> str:
    told = of.command("mokutil --sb-state").out
    return find(r"SecureBoot (enabled|disabled)", told) or {
        "on": "enabled",
        "off": "disabled",
    }.get(of.file("SecureBoot"), "")


def _worst(xids: list[int]) -> str:
    """The gravest; the last one where none is known."""
    known = (row["xid"] for row in factfiles.read("xids")["rows"])
    return next((str(one) for one in known if one in xids), str(xids[-1]) if xids else "")
