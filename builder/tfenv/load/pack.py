"""The program that runs in the image, as one file: the same sources give the same bytes on every host."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from tfenv.errors import IntegrityError
from tfenv.resources import verifier_dir

NAME = "load.pyz"
# What it uses of the verification suite: how to run a part in a process of its own, with a limit.
_SHARED = ("tfenv_verify/__init__.py", "tfenv_verify/protocol.py", "tfenv_verify/runner.py")


def pack(folder: Path | None = None) -> bytes:
    """The zipapp ``load.pyz``."""
    root = folder if folder is not None else verifier_dir()
    files = {path.relative_to(root).as_posix(): path for path in (root / "tfenv_load").rglob("*.py")}
    files |= {name: root / name for name in _SHARED}
    files["__main__.py"] = root / "tfenv_load" / "__main__.py"
    if missing := [str(path) for path in files.values() if not path.is_file()]:
        raise IntegrityError(f"{missing[0]} is missing", remedy="install tfenv again")
    out = io.BytesIO()
    # Stored, not compressed: zlib's output differs between its versions.
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            entry.create_system = 3
            archive.writestr(entry, files[name].read_bytes())
    return out.getvalue()
