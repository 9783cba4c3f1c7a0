"""What TensorFlow prints by the dozen on hosts without NUMA, and what is no fault: it is no evidence."""

from __future__ import annotations

import re

# The same as in builder/tfenv/report/noise.py: neither side imports the other.
NOISE = re.compile(
    "NUMA node read from SysFS had negative value|could not open file to read NUMA node"
    "|Could not identify NUMA node of platform|^Your kernel may (not )?have been built with(out)? NUMA"
)


def without_noise(lines: list[str]) -> list[str]:
    """The lines that may tell something."""
    return [line for line in lines if not NOISE.search(line)]
