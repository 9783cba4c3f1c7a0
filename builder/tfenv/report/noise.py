"""What TensorFlow prints by the dozen on hosts without NUMA, and what is no fault: it is no evidence."""

from __future__ import annotations

import re

# The same as in verifier/tfenv_verify/noise.py: neither side imports the other.
NOISE = re.compile(
    "NUMA node read from SysFS had negative value|could not open file to read NUMA node"
    "|Could not identify NUMA node of platform|^Your kernel may (not )?have been built with(out)? NUMA"
)


def without_noise(text: str) -> str:
    """The text without the lines that tell nothing; the very same text where it has none."""
    if not any(NOISE.search(line) for line in text.splitlines()):
        return text
    return "\n".join(line for line in text.splitlines() if not NOISE.search(line))
