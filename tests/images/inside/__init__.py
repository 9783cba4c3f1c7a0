"""Scripts that look at the image from the inside: standard library only, one JSON value on stdout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from testinfra.host import Host

_HERE = Path(__file__).parent


def source(name: str) -> str:
    """The script ``name``, for ``python -c``."""
    return (_HERE / f"{name}.py").read_text()


def ask(host: Host, name: str, *arguments: str, before: str = "") -> Any:
    """What the script ``name`` says in the container.

    Args:
        before: a command line that starts it, e.g. ``env -i``.
    """
    slots = " ".join(["%s"] * len(arguments))
    line = f"{before} /opt/tfenv/venv/bin/python -B -c %s {slots}"
    return json.loads(host.check_output(line, source(name), *arguments))
