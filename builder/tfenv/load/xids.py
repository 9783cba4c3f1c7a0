"""What NVIDIA's Xid errors mean, of those that a load brings out, and what to do."""

from __future__ import annotations

from tfenv import factfiles


def meaning(xid: int) -> tuple[str, str]:
    """What it is, and what to do."""
    for row in factfiles.read("xids")["rows"]:
        if row["xid"] == xid:
            return row["meaning"], row["remedy"]
    return "see NVIDIA's list of Xid errors", "look at the kernel log: `dmesg | grep -i xid`"
