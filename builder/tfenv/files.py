"""Write generated files so that a reader sees all of the old or all of the new ones."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from tfenv.errors import NotReadyError

LOCK_NAME = "lock.json"


def write_all(folder: Path, files: Mapping[str, str]) -> None:
    """Write each file under a temporary name, then rename them all.

    Raises:
        NotReadyError: the folder cannot be written; the old files are untouched.
    """
    aside = {folder / name: folder / f".{name}.{os.getpid()}.tmp" for name in files}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for target, temporary in aside.items():
            with temporary.open("w", encoding="utf-8", newline="\n") as file:
                file.write(files[target.name])
                file.flush()
                os.fsync(file.fileno())
        for target, temporary in aside.items():
            temporary.replace(target)
    except OSError as error:
        raise NotReadyError(
            f"cannot write to {folder}: {error.strerror or error}",
            remedy="free space or change the folder's permissions; the old files are untouched",
        ) from error
    finally:
        for temporary in aside.values():
            with contextlib.suppress(OSError):  # as where the folder is none
                temporary.unlink()
