"""``python3 -m tfenv.load FILE``: write what runs in images, for a host without the tfenv command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tfenv.alone import run_alone

from . import pack


def main(argv: Sequence[str]) -> int:
    """Write the file."""
    parser = argparse.ArgumentParser(prog="python3 -m tfenv.load", description=__doc__)
    parser.add_argument("file", type=Path, help="e.g. load.pyz")
    parser.parse_args(list(argv)).file.write_bytes(pack())
    return 0


if __name__ == "__main__":
    run_alone(main, sys.argv[1:])
