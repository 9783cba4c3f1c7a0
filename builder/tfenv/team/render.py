"""An environment and its lock become files: the Dockerfile of its own layers, and the list of all wheels."""

from __future__ import annotations

import hashlib
import json
import shlex
from functools import cache

from tfenv import resources
from tfenv.model import Environment, Lock
from tfenv.render import LABEL_PREFIX, PROVIDED, VENV, image_labels, templating, trim_arguments

from .joined import development, layer
from .model import TeamLock

# Byte code that wheels bring is stale as soon as its file is dated anew.
_ALWAYS = ("**/__pycache__/**",)


@cache
def template_version() -> str:
    """sha256 over all that makes an environment's own layers of a lock."""
    from tfenv import buildx

    digest = hashlib.sha256(json.dumps(buildx.EXPORT).encode())
    root = resources.templates_dir()
    # Of tools/ what the steps call: what else is there makes rows, and has no say here.
    tools = [root / "tools" / name for name in ("install-wheels.sh", "settle.sh", "trim.py")]
    for path in sorted([root / "Dockerfile.team.j2", *(root / "team").glob("*.*"), *tools]):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()


def render(
    cell: Environment, row: Lock, team: TeamLock, whole: Lock, *, locked: bool = True
) -> dict[str, str]:
    """The generated files of an environment, by name.

    Args:
        whole: the row's lock and the team's joined.
        locked: false marks an image on another one than the row's locked one.
    """
    from tfenv import lockfile

    python = f"python{cell.python}" if row.interpreter is None else f"{PROVIDED}/bin/python{cell.python}"
    keep = development(cell)
    dockerfile = (
        templating()
        .get_template("Dockerfile.team.j2")
        .render(
            cell=cell,
            row=team.row,
            own=layer(cell, row, team),
            asked=team,
            names={kind: [w.name for w in team.wheels if w.layer == kind] for kind in ("python", "cuda")},
            python=python,
            site_packages=f"{VENV}/lib/python{cell.python}/site-packages",
            trim_python=_words(_ALWAYS) if keep else trim_arguments(row, cuda=False),
            trim_cuda="" if keep else trim_arguments(row, cuda=True),
            labels=labels(cell, whole, lockfile.lock_hash(whole), team, locked=locked),
        )
    )
    return {"Dockerfile": dockerfile, lockfile.REQUIREMENTS_NAME: lockfile.requirements_lock(whole)}


def labels(cell: Environment, whole: Lock, lock_hash: str, team: TeamLock, *, locked: bool) -> dict[str, str]:
    """The row's labels with the environment's name, lock and row."""
    made = image_labels(cell, whole, lock_hash, locked=locked and whole.complete)
    own = {
        "org.opencontainers.image.description": f"{cell.name}: packages of a team on {team.row.cell}",
        f"{LABEL_PREFIX}.row": team.row.cell,
        f"{LABEL_PREFIX}.row-inputs": f"sha256:{team.row.inputs}",
    }
    return {**made, **own}


def _words(globs: tuple[str, ...]) -> str:
    return "".join(f" \\\n      {shlex.quote(word)}" for word in globs)
