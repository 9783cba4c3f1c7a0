"""What NVIDIA's Xid errors mean, of those that a load brings out, and what to do.

Source: https://docs.nvidia.com/deploy/xid-errors/
"""

from __future__ import annotations

_MEMORY = (
    "memory that fails: look at `nvidia-smi -q -d ECC,ROW_REMAPPER`, reset the GPU,\n"
    "have it replaced if it returns"
)
XIDS: dict[int, tuple[str, str]] = {
    13: (
        "a kernel broke a rule of the hardware",
        "run it on another GPU of the kind: if it passes there, this one is faulty",
    ),
    31: (
        "a memory access outside of what was allocated",
        "run it on another GPU of the kind: if it passes there, this one is faulty",
    ),
    43: (
        "the GPU stopped processing",
        "run it on another GPU of the kind: if it passes there, this one is faulty",
    ),
    48: ("two bits of memory were wrong at once", _MEMORY),
    61: ("the GPU's own controller halted", "reset the GPU; update its driver"),
    62: ("the GPU's own controller halted", "reset the GPU; update its driver"),
    63: ("a row of memory was put out of use", _MEMORY),
    64: ("a row of memory could not be put out of use", _MEMORY),
    74: ("NVLink failed", "look at `nvidia-smi nvlink -e`; reseat the bridge or the board"),
    79: ("the GPU has fallen off the bus", "look at power, cooling and the PCIe slot; it needs a reboot"),
    92: ("many corrected memory errors", _MEMORY),
    94: ("a memory error that was contained to one program", _MEMORY),
    95: ("a memory error that was not contained", _MEMORY),
    119: ("the GPU's system processor did not answer", "update the driver; reset the GPU"),
    120: ("the GPU's system processor failed", "update the driver; reset the GPU"),
}


def meaning(xid: int) -> tuple[str, str]:
    """What it is, and what to do."""
    return XIDS.get(xid, ("see NVIDIA's list of Xid errors", "look at the kernel log: `dmesg | grep -i xid`"))
