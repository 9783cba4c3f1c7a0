"""``python3 -m tfenv.doctor.record_only FILE``: the recording alone, with the standard library, on any host.

For machines where tfenv is not installed: PYTHONPATH names a copy of the folder ``builder``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from .evidence import dump
from .looking import collect
from .scrub import of_this_host, scrubbed
from .sources import Sources


def main(arguments: list[str]) -> int:
    """Write a recording to the file that is named, or to stdout."""
    ask_anyway = "--ask-anyway" in arguments
    arguments = [argument for argument in arguments if argument != "--ask-anyway"]
    if len(arguments) != 1 or arguments[0].startswith("--") or arguments[0] == "-h":
        print("usage: python3 -m tfenv.doctor.record_only [--ask-anyway] FILE|-", file=sys.stderr)
        return 2
    text = dump(scrubbed(collect(Sources(), ask_anyway=ask_anyway), of_this_host()))
    if arguments[0] == "-":
        sys.stdout.write(text)
    else:
        Path(arguments[0]).write_text(text, encoding="utf-8")
        print(f"written to {arguments[0]}: look through it before you give it away", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
