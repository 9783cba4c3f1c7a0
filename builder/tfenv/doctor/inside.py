"""Look from within a container: the part that runs in any image with a Python, mounted and not baked in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tfenv.errors import NotReadyError

if TYPE_CHECKING:
    from tfenv.console import Console

NAME = "doctor.pyz"


def pack(folder: Path | None = None) -> bytes:
    """The zipapp ``doctor.pyz``: the same sources give the same bytes."""
    import io
    import zipfile

    from tfenv.errors import IntegrityError
    from tfenv.resources import verifier_dir

    root = folder if folder is not None else verifier_dir()
    files = {path.relative_to(root).as_posix(): path for path in (root / "tfenv_doctor").rglob("*.py")}
    files["__main__.py"] = root / "tfenv_doctor" / "__main__.py"
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


def doctor_in(name: str, *, deep: bool, as_json: bool, console: Console) -> int:
    """Run it in an image of this engine, with the host's GPUs if there are any, and tell what it says.

    Args:
        name: a cell, or any image that the engine has.

    Raises:
        NotReadyError: no engine, or it does not have the image.
    """
    raise NotReadyError("not written yet", remedy="")
