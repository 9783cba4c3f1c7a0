"""NVIDIA's devices on the PCI bus: GPUs, NVSwitches, and which kernel driver holds them."""

from __future__ import annotations

from typing import Any

from tfenv import factfiles
from tfenv.doctor.evidence import Evidence

from .words import listed, yes

_ROOT = "/sys/bus/pci/devices/"
_DISPLAY, _BRIDGE = ("0x0300", "0x0302"), ("0x0680",)


def read(of: Evidence) -> dict[str, str]:
    """``pci_gpus`` and of what family they are, who holds them, and how many NVSwitches there are."""
    devices = _devices(of)
    seen = [d for d in devices if d.get("class", "")[:6] in _DISPLAY]
    switches = [d for d in devices if d.get("class", "")[:6] in _BRIDGE]
    if not devices and of.system.get("pci") != "yes":
        return {}
    held = {
        kind: [d for d in seen if d.get("driver", "") == kind] for kind in ("nvidia", "nouveau", "vfio-pci")
    }
    families = [family for d in seen if (family := _family(d.get("device", "")))]
    narrow = [
        f"{d['place']} has {d['current_link_width']} of {d['max_link_width']} lanes"
        for d in seen
        if _number(d.get("current_link_width"))
        and _number(d.get("current_link_width")) < _number(d.get("max_link_width"))
    ]
    return {
        "pci_gpus": str(len(seen)),
        "pci_places": listed([d["place"] for d in seen], 8),
        "pci_families": ", ".join(dict.fromkeys(str(f["architecture"]) for f in families)),
        "pci_capabilities": ",".join(dict.fromkeys(str(f["capability"]) for f in families)),
        "needs_open_module": yes(any(f.get("module") == "open" for f in families)) if families else "",
        "needs_closed_module": yes(any(f.get("module") == "closed" for f in families)) if families else "",
        "nvswitches": str(len(switches)),
        "held_by_nvidia": str(len(held["nvidia"])),
        "held_by_nouveau": str(len(held["nouveau"])),
        "held_by_vfio": str(len(held["vfio-pci"])),
        "held_by_nobody": str(sum(not d.get("driver") for d in seen)),
        "all_held_by_vfio": yes(seen and len(held["vfio-pci"]) == len(seen)),
        "gone_from_bus": yes(any(d.get("device", "").lower() == "0xffff" for d in devices)),
        "narrow_links": listed(narrow),
    }


def _devices(of: Evidence) -> list[dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for path, text in of.files.items():
        if path.startswith(_ROOT) and path.count("/") == 6:
            place, name = path[len(_ROOT) :].split("/")
            found.setdefault(place, {"place": place})[name] = (text or "").strip()
    return [found[place] for place in sorted(found) if found[place].get("vendor") == "0x10de"]


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 4 else 0


def _family(device: str) -> dict[str, Any]:
    try:
        number = int(device, 16)
    except ValueError:
        return {}
    for row in factfiles.read("pci")["rows"]:
        if int(row["from"], 16) <= number <= int(row["to"], 16):
            return dict(row)
    return {}
