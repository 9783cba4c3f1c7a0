"""What the commands that write pages have in common."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tfenv.commands._common import emit


def write_or_check(made: Mapping[Path, str], *, check: bool, as_json: bool, what: str, command: str) -> None:
    """Write the files that are not current, or refuse them; say which is which.

    Args:
        made: their texts, by path; check: write nothing. what, command: see ``webpage.raise_drift``.

    Raises:
        DriftError: a file is not current, with ``check``.
    """
    from tfenv.files import write_all
    from tfenv.webpage import drift, raise_drift

    changed = drift(made)
    if check:
        raise_drift(changed, what=what, command=command)
    for path in changed:
        write_all(path.parent, {path.name: made[path]})
    emit(
        {"files": [str(path) for path in made], "changed": [str(path) for path in changed]},
        as_json=as_json,
        text="\n".join(f"{path}: {'written' if path in changed else 'current'}" for path in made),
    )
