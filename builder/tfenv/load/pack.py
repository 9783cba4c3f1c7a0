"""The program that runs in the image, as one file."""

from __future__ import annotations

from pathlib import Path

from tfenv import pyz
from tfenv.resources import verifier_dir

NAME = "load.pyz"
# What it uses of the verification suite: how to run a part in a process of its own, with a limit.
_SHARED = tuple(f"tfenv_verify/{name}.py" for name in ("__init__", "noise", "protocol", "runner"))


def pack(folder: Path | None = None) -> bytes:
    """The zipapp ``load.pyz``."""
    root = folder if folder is not None else verifier_dir()
    shared = {name: root / name for name in _SHARED}
    main = {"__main__.py": root / "tfenv_load" / "__main__.py"}
    return pyz.packed({**pyz.sources(root, "tfenv_load"), **shared, **main})
