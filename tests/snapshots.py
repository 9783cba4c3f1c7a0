"""Snapshots for tests: bundles in folders, and what commands say of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tfenv.snapshot.layout import Layout, Manifest

Tell = Callable[..., tuple[int, str, str]]


def data(told: tuple[int, str, str], code: int = 0) -> Any:
    """The one JSON document that was printed."""
    assert told[0] == code, told
    (line,) = told[1].splitlines()
    return json.loads(line)


def bundle(folder: Path, number: int = -1) -> tuple[Layout, Manifest]:
    """A snapshot of a folder, the newest by default."""
    layout = Layout(folder)
    return layout, layout.manifest(layout.snapshots()[number])


def titles(manifest: Manifest) -> set[str]:
    """The files that a snapshot holds."""
    return {file.title for file in manifest.files}
