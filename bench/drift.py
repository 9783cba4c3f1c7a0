"""How many environments `tfenv bisect` builds for a real drift, and how long that takes.

An old TensorFlow, its dependencies not pinned: it imports with those of its own time, and no longer with
today's. Nothing says which package it is. A gigabyte or two of wheels goes to uv's cache, the rest to a
folder that is removed.

usage: .venv/bin/python bench/drift.py [--good DATE] [--bad DATE] [--python 3.11] [--json] [REQUIREMENT]...
                                       [--command COMMAND...]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TFENV = (sys.executable, "-c", "from tfenv.cli import main; main()")
COMMAND = ("python", "-c", "import tensorflow, tensorboard.main")
REQUIREMENTS = ("tensorflow-cpu==2.14.0",)


def main() -> None:
    """Bisect, and print one line a figure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("requirements", nargs="*", default=REQUIREMENTS)
    parser.add_argument("--good", default="2023-10-15")
    parser.add_argument("--bad", default="today")
    parser.add_argument("--python", default="3.11")
    parser.add_argument("--command", nargs=argparse.REMAINDER, default=COMMAND)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found, seconds = measure(options)
    report = figures(found, seconds)
    if options.json:
        print(json.dumps({"figures": report, "result": found}, indent=2))
        return
    for name, value in report.items():
        print(f"{name}: {value}")


def measure(options: argparse.Namespace) -> tuple[dict[str, Any], float]:
    """The answer of one bisection that knows nothing yet, and the seconds it took."""
    with tempfile.TemporaryDirectory(prefix="tfenv-bisect-") as folder:
        asked = Path(folder, "requirements.in")
        asked.write_text("".join(f"{line}\n" for line in options.requirements), "utf-8")
        typed = ["bisect", "-r", str(asked), "--good", options.good, "--bad", options.bad]
        typed += ["--python", options.python, "--json", "--", *options.command]
        started = time.monotonic()
        done = subprocess.run(
            [*TFENV, *typed],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "TFENV_CACHE": str(Path(folder, "cache"))},
        )
        seconds = time.monotonic() - started
    if done.returncode:
        sys.exit(f"tfenv bisect ended with {done.returncode}")
    return json.loads(done.stdout), seconds


def figures(found: dict[str, Any], seconds: float) -> dict[str, Any]:
    """What is worth a line."""
    counts = found["counts"]
    changes = [
        ", ".join(f"{c['name']} {c['before']} -> {c['after']}" for c in culprit["changes"])
        for culprit in found["culprits"]
    ]
    return {
        "culprits": "; ".join(changes),
        "constraints": " ".join(found["constraints"]),
        "with them the bad end": found["constraints_tested"],
        "candidates": counts["candidates"],
        "halving them takes": counts["bound"],
        "asked of the search": counts["asked"],
        "environments built": counts["builds"],
        "seconds": round(seconds),
        "seconds a build and its test": round(counts["seconds"] / max(1, counts["builds"]), 1),
    }


if __name__ == "__main__":
    main()
