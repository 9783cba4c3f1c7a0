"""An image whose files are in a folder, and a file beside it that says which image it is.

Only the standard library and tfenv's own code are used, as by ``rootfs_run``.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tfenv.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Unpacked:
    """An image's files in a folder.

    Args:
        digest: of its manifest, with ``sha256:``. env, user, workdir: of its config.
        owner: (uid, gid) that the processes get where they may.
    """

    folder: Path
    digest: str
    env: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    workdir: str = "/"

    @property
    def owner(self) -> tuple[int, int]:
        """Numbers of the config's user; root where it names none."""
        name, _, group = self.user.partition(":")
        if not name:
            return 0, 0
        for line in _lines(self.folder / "etc/passwd"):
            entry = line.split(":")
            if len(entry) > 3 and name in (entry[0], entry[2]):
                return int(entry[2]), int(group) if group.isdigit() else int(entry[3])
        number = int(name) if name.isdigit() else 0
        return number, int(group) if group.isdigit() else number


def read_unpacked(folder: Path, config: Path | None = None) -> Unpacked:
    """The image whose files are in ``folder``.

    Args:
        config: JSON with ``manifest`` (its digest) and ``config`` (of the image); ``FOLDER.json`` by default.

    Raises:
        UsageError: one of them is missing or not what it should be.
    """
    # So that `.` has a name, and a link keeps its own.
    folder = Path(os.path.abspath(folder))  # noqa: PTH100
    where = config or folder.with_name(folder.name + ".json")
    remedy = f"unpack the archive with `python3 -m tfenv.rootfs_unpack ARCHIVE {folder}`"
    if not (folder / "usr").is_dir():
        raise UsageError(f"{folder} holds no unpacked image", remedy=remedy)
    try:
        # Other programs may have printed before it.
        data = json.loads(where.read_text(encoding="utf-8").strip().splitlines()[-1])
        told = data["config"]
        env = dict(entry.split("=", 1) for entry in told.get("Env") or ())
        digest = str(data["manifest"])
        if not re.fullmatch("sha256:[0-9a-f]{64}", digest):
            raise ValueError(digest)
        user, workdir = str(told.get("User") or ""), str(told.get("WorkingDir") or "/")
    except FileNotFoundError:
        raise UsageError(
            f"{where} is missing: it says which image the folder holds",
            remedy=f"copy it along with the folder; or {remedy}",
        ) from None
    except (LookupError, OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(f"{where} does not tell which image this is: {_why(error)}", remedy=remedy) from None
    return Unpacked(
        folder=folder.resolve(),
        digest=digest,
        env=env,
        user=user,
        workdir=workdir,
    )


def _why(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"it cannot be read: {error.strerror}"
    if isinstance(error, KeyError):
        return f"it has no {error}"
    if isinstance(error, IndexError):
        return "it is empty"
    if isinstance(error, json.JSONDecodeError):
        return "its last line is no JSON"
    return "it is not as rootfs_unpack writes it"


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
