"""Tell people what `tfenv up --json` has said on stdin, and end as it did: with the exit code given.

Unverified for want of a GPU, and for no other reason, ends 0: that is all that a machine without one can do.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def end_of(code: int, told: dict[str, Any]) -> tuple[int, str]:
    """The exit code, and the last line to print, if any."""
    if code == 3 and told.get("verdict") == "unverified" and told.get("reason") == "no GPU":
        return 0, "unverified: no GPU"
    return code, ""


def text_of(told: dict[str, Any]) -> list[str]:
    """What was made, as lines. Errors and the verdict were said on stderr."""
    if "cell" not in told or "error" in told:
        return []
    lines = [told["cell"], *(f"  {told[key]}" for key in ("manifest", "likeness") if told.get(key))]
    lines += [f"  {tag}" for tag in told.get("tags") or ()]
    return [*lines, f"  reports: {told['reports']}"] if told.get("reports") else lines


def read(line: str) -> dict[str, Any] | None:
    """The JSON object that a line is."""
    try:
        told = json.loads(line)
    except ValueError:
        return None
    return told if isinstance(told, dict) else None


def main() -> int:
    """Print, and return the exit code."""
    told: dict[str, Any] = {}
    for line in sys.stdin.read().splitlines():
        found = read(line)
        told = found or told
        for shown in text_of(found) if found is not None else [line]:
            print(shown)
    code, last = end_of(int(sys.argv[1]), told)
    if last:
        print(last)
    return code


if __name__ == "__main__":
    sys.exit(main())
