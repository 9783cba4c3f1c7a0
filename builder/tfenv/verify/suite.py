"""The suite as one file, the same on every host, and the name of all that its verdict depends on."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, get_args

from tfenv import pyz
from tfenv.errors import IntegrityError
from tfenv.resources import verifier_dir

Suite = Literal["smoke", "full", "workers"]
SUITES: tuple[Suite, ...] = get_args(Suite)
PACKAGE = "tfenv_verify"


def pack(folder: Path | None = None) -> bytes:
    """The suite as a zipapp: the same sources give the same bytes on every host."""
    root = folder if folder is not None else verifier_dir()
    if not (root / "__main__.py").is_file():
        raise IntegrityError(f"{root} holds no verification suite", remedy="install tfenv again")
    return pyz.packed({**pyz.sources(root, PACKAGE), "__main__.py": root / "__main__.py"})


def suite_hash(packed: bytes, suite: str, declared: Mapping[str, Any]) -> str:
    """Hex sha256 of all that a verdict depends on beside image and host: code, suite, declaration.

    The image's name is no part of it: a verdict belongs to a digest.
    """
    told = {name: value for name, value in declared.items() if name != "image"}
    text = json.dumps([hashlib.sha256(packed).hexdigest(), suite, told], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def declared_hash(declared: Mapping[str, Any]) -> str:
    """Hex sha256 of a declaration, its image's name aside, as the suite itself says it when it starts."""
    told = {name: value for name, value in declared.items() if name != "image"}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


@contextmanager
def mounted(packed: bytes, declared: Mapping[str, Any]) -> Iterator[Path]:
    """A folder with the suite and the declaration, readable for whatever user the image has."""
    with tempfile.TemporaryDirectory(prefix="tfenv-verify-") as name:
        folder = Path(name)
        (folder / "verify.pyz").write_bytes(packed)
        (folder / "declared.json").write_text(json.dumps(declared, indent=2, sort_keys=True))
        for path in folder.iterdir():
            path.chmod(0o644)
        folder.chmod(0o755)
        yield folder
