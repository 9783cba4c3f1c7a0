"""nvidia-smi: whether it answers, and the state of each GPU: MIG, ECC, fabric, compute mode, memory."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from tfenv.doctor.evidence import Evidence, Ran

from .words import VERSION, counted, find, listed, one_line, short_lines, yes

QUERY = "nvidia-smi -q -x"
LIST = "nvidia-smi -L"
CAPABILITIES = "nvidia-smi --query-gpu=index,name,compute_cap --format=csv,noheader"
#: state -> what nvidia-smi says then.
_SAYS = {
    "mismatch": r"Driver/library version mismatch",
    "no-driver": r"couldn't communicate with the NVIDIA driver|Driver Not Loaded",
    "no-devices": r"No devices were found",
    "no-library": r"couldn't find libnvidia-ml|NVML Shared Library Not Found"
    r"|libnvidia-ml\.so[^\n]*cannot open",
    "permission": r"Insufficient Permissions|Permission denied",
    "no-rights": r"Failed to initialize NVML: Unknown Error",
    "lost": r"GPU is lost|Unable to determine the device handle|Unknown Error",
    "blocked": r"GPU access blocked by the operating system",
}


#: Where nvidia-smi tells why clocks are low; the name has changed with driver 535.
_SLOWED = tuple(
    f"clocks_{kind}_reasons/clocks_{kind}_reason_hw_{why}"
    for kind in ("event", "throttle")
    for why in ("thermal_slowdown", "power_brake_slowdown")
)


def read(of: Evidence) -> dict[str, str]:
    """``smi``, a state, and what it tells."""
    query, plain = of.command(QUERY), of.command(LIST)
    said = short_lines(f"{'' if query.ok else query.said}\n{plain.said}")
    found = {
        "smi": _state(query, plain),
        "smi_said": one_line(re.sub(r"<[^>]*>|<\?xml.*", " ", said)) if not (query.ok and plain.ok) else "",
        "smi_library": find(rf"NVML library version: ({VERSION})", said),
        "mig_ids": listed(re.findall(r"UUID: (MIG-[0-9A-Za-z/-]+)", plain.out), 8),
    }
    names = re.findall(r"^GPU \d+: (.+?) \(UUID", plain.out, re.MULTILINE)
    if names:
        found |= {
            "smi_gpus": str(len(names)),
            "gpu_names": "; ".join(names),
            "gpus_in_words": counted(_bare(names)),
        }
        slices = len(re.findall(r"^[ \t]+MIG ", plain.out, re.MULTILINE))
        found |= {"mig_devices": str(slices), "mig_on": yes(slices)}
    if rows := re.findall(
        r"^[ \t]*\d+, *(.+?), *(\d+\.\d)[ \t]*$", of.command(CAPABILITIES).out, re.MULTILINE
    ):
        found["gpu_capabilities"] = ",".join(dict.fromkeys(capability for _, capability in rows))
    root = _xml(query.out) if query.out else None
    return {**found, **(_of_xml(root) if root is not None else {})}


def _bare(names: list[str]) -> list[str]:
    return [re.sub(r"^NVIDIA ", "", name) for name in names]


def _state(query: Ran, plain: Ran) -> str:
    if query.skipped:
        return "not-asked"
    if query.late or plain.late:
        return "hangs"
    said = short_lines(f"{'' if query.ok else query.said}\n{'' if plain.ok else plain.said}")
    for state, pattern in _SAYS.items():
        if re.search(pattern, said, re.IGNORECASE):
            return state
    if not query.there and not plain.there:
        return "missing"
    return "ok" if query.ok or plain.ok else "fails"


def _xml(text: str) -> ElementTree.Element | None:
    if "<!ENTITY" in text:  # nvidia-smi writes none, and they can be made to grow without end
        return None
    start = text.find("<nvidia_smi_log")
    try:
        return ElementTree.fromstring(text[start:]) if start >= 0 else None
    except ElementTree.ParseError:
        return None


def _of_xml(root: ElementTree.Element) -> dict[str, str]:
    gpus = root.findall("gpu")
    names = [_text(gpu, "product_name") for gpu in gpus]
    if not gpus:
        return {"smi_driver": _text(root, "driver_version"), "smi_cuda": _text(root, "cuda_version")}

    def where(*paths: str, among: tuple[str, ...]) -> list[str]:
        """The GPUs (by number) of which one of the values is among some."""
        return [
            f"GPU {number}"
            for number, gpu in enumerate(gpus)
            if any(_text(gpu, path) in among for path in paths)
        ]

    def counts(*paths: str) -> list[str]:
        return [
            f"GPU {number}"
            for number, gpu in enumerate(gpus)
            if any((value := _text(gpu, path)).isdecimal() and int(value) > 0 for path in paths)
        ]

    modes = {_text(gpu, "compute_mode") for gpu in gpus}
    fabrics = [(_text(gpu, "fabric/state"), _text(gpu, "fabric/status")) for gpu in gpus]
    bad = [(state, status) for state, status in fabrics if state not in ("", "N/A", "Completed")]
    failed = [(s, t) for s, t in fabrics if s == "Completed" and t not in ("", "N/A", "Success")]
    slices = sum(len(gpu.findall("mig_devices/mig_device")) for gpu in gpus)
    mig_on = where("mig_mode/current_mig", among=("Enabled",))
    free = [_mib(_text(gpu, "fb_memory_usage/free")) for gpu in gpus]
    total = [_mib(_text(gpu, "fb_memory_usage/total")) for gpu in gpus]
    full = [
        f"GPU {n}"
        for n, (f, t) in enumerate(zip(free, total, strict=True))
        if f is not None and t and f < t * 0.1
    ]
    hot = [
        f"GPU {number}"
        for number, gpu in enumerate(gpus)
        if any(_text(gpu, path) == "Active" for path in _SLOWED)
    ]
    return {
        "smi_driver": _text(root, "driver_version"),
        "smi_cuda": _text(root, "cuda_version"),
        "smi_gpus": str(len(gpus)),
        "gpu_names": "; ".join(names),
        "gpus_in_words": counted(_bare(names)),
        "mig_devices": str(slices),
        "mig_on": yes(mig_on),
        "mig_gpus": listed(mig_on),
        "mig_without_devices": yes(mig_on and not slices),
        "mig_pending": listed(
            [
                f"GPU {n}"
                for n, gpu in enumerate(gpus)
                if _text(gpu, "mig_mode/current_mig") != _text(gpu, "mig_mode/pending_mig")
            ]
        ),
        "persistence": yes(not where("persistence_mode", among=("Disabled",))),
        "compute_exclusive": listed(where("compute_mode", among=("Exclusive_Process", "Exclusive_Thread"))),
        "compute_prohibited": listed(where("compute_mode", among=("Prohibited",))),
        "compute_modes": listed(sorted(modes)),
        "fabric_waits": yes(bad),
        "fabric_state": bad[0][0] if bad else (fabrics[0][0] if fabrics else ""),
        "fabric_failed": one_line(failed[0][1], 80) if failed else "",
        "ecc_uncorrected": listed(
            counts(
                "ecc_errors/volatile/dram_uncorrectable",
                "ecc_errors/volatile/sram_uncorrectable",
                "ecc_errors/volatile/double_bit/total",
                "ecc_errors/volatile/sram_uncorrectable_parity",
                "ecc_errors/volatile/sram_uncorrectable_secded",
            )
        ),
        "remap_pending": listed(where("remapped_rows/remapped_row_pending", among=("Yes",))),
        "remap_failed": listed(where("remapped_rows/remapped_row_failure", among=("Yes",))),
        "pages_pending": listed(
            where("retired_pages/pending_retirement", "retired_pages/pending_blacklist", among=("Yes",))
        ),
        "reset_needed": listed(
            [
                *where("gpu_reset_status/reset_required", among=("Yes",)),
                *(
                    f"GPU {n}"
                    for n, gpu in enumerate(gpus)
                    if _text(gpu, "gpu_recovery_action") in ("Reset", "GPU Reset", "Node Reboot", "Reboot")
                ),
            ]
        ),
        "memory_full": listed(full),
        "memory_free_mib": str(min((f for f in free if f is not None), default="")),
        "slowed_down": listed(hot),
        "vgpu": yes(where("gpu_virtualization_mode/virtualization_mode", among=("VGPU",))),
        "vgpu_unlicensed": listed(
            [
                f"GPU {n}"
                for n, gpu in enumerate(gpus)
                if _text(gpu, "vgpu_software_licensed_product/license_status").startswith("Unlicensed")
            ]
        ),
        "display": listed(where("display_active", among=("Enabled",))),
    }


def _text(of: ElementTree.Element, path: str) -> str:
    return (of.findtext(path) or "").strip()[:200]


def _mib(text: str) -> int | None:
    found = re.fullmatch(r"(\d{1,9}) MiB", text)
    return int(found[1]) if found else None
