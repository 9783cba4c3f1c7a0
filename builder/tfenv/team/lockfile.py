"""Read and write the lock of a team's environment: canonical as the rows' locks are, of a kind of its own."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tfenv.errors import TfenvError
from tfenv.files import LOCK_NAME
from tfenv.lockfile import canonical, check_shape
from tfenv.plain import from_plain

from .model import TeamLock

FORMAT = 1
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHAPES = {
    "row.lock": _SHA256,
    "row.inputs": _SHA256,
    "row.packages": _SHA256,
    "row.manifest": re.compile(r"(?:sha256:[0-9a-f]{64})?"),
    "apt": re.compile(r"[a-z0-9][a-z0-9.+-]*"),
}


def dump(lock: TeamLock) -> str:
    """The canonical text."""
    return canonical(lock)


def load(text: str, *, where: str) -> TeamLock:
    """Parse a lock and check every value.

    Raises:
        TfenvError: names ``where`` and the field.
    """
    try:
        data = json.loads(text)
        if not isinstance(data, dict) or data.get("kind") != "team":
            raise ValueError("it is no lock of a team's environment")
        if data.get("format") != FORMAT:
            raise ValueError(f"its format is {data.get('format')!r}, this tfenv reads {FORMAT}")
        lock = from_plain(TeamLock, data, check=_shape)
        for kind, names in (("debian", lock.debian), ("wheels", lock.wheels)):
            listed = [item.name for item in names]
            if listed != sorted(set(listed)):
                raise ValueError(f"{kind}: not sorted by name, or one is there twice")
        if bad := [wheel.name for wheel in lock.wheels if wheel.layer not in ("cuda", "python")]:
            raise ValueError(f"wheels: {', '.join(bad)} is in no layer of an environment")
    except (ValueError, RecursionError) as error:
        raise _bad(where, str(error)) from error
    if dump(lock) != text:
        raise _bad(where, "it was reformatted or edited by hand (it is not in canonical form)")
    return lock


def read(path: Path) -> TeamLock | None:
    """Read ``images/<environment>/lock.json``; None where there is none.

    Raises:
        TfenvError: it is damaged, or the lock of something else.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _bad(str(path), f"it cannot be read ({error})") from error
    lock = load(text, where=str(path))
    if lock.cell != path.parent.name:
        raise _bad(str(path), f"it is the lock of another environment, {lock.cell}")
    return lock


def lock_file(images: Path, name: str) -> Path:
    """Where the lock of an environment is, or would be."""
    return images / name / LOCK_NAME


def _shape(where: str, value: Any) -> None:
    shape = _SHAPES.get(re.sub(r"\[\d+\]", "", where))
    if shape is None:
        check_shape(where, value)
    elif not shape.fullmatch(value):
        raise ValueError(f"{where}: {value!r} is not allowed there")


def _bad(where: str, reason: str) -> TfenvError:
    name = Path(where).parent.name
    return TfenvError(
        f"{where} cannot be used: {reason}",
        remedy=f"restore the committed file (git checkout), or delete it and type: tfenv lock {name}",
    )
