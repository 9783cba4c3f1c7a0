"""A cell and its lock become files: the Dockerfile and the wheel list, the same bytes every time."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping, Set
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tfenv import resources
from tfenv.errors import DriftError, UsageError
from tfenv.times import rfc3339, unix

if TYPE_CHECKING:
    import jinja2

    from tfenv.model import BaseKind, Cell, Lock, Rule

LABEL_PREFIX = "dev.tfenv"
PARTS = "parts.j2"
VENV = "/opt/tfenv/venv"
PROVIDED = "/opt/tfenv/python"


@cache
def template_version(kind: BaseKind) -> str:
    """sha256 over all that makes an image of a lock, on a kind of base: templates, what else writes bytes."""
    from tfenv import buildx, rootfs

    recipe = rootfs.recipe_version() if kind == "debian" else ""
    digest = hashlib.sha256(json.dumps([recipe, buildx.EXPORT]).encode())
    root = resources.templates_dir()
    own = [root / f"Dockerfile.{kind}.j2", root / PARTS, *(root / "tools").rglob("*")]
    for path in sorted(own):
        if path.is_file() and "__pycache__" not in path.parts:
            data = path.read_bytes()
            digest.update(f"{path.relative_to(root).as_posix()}\0{len(data)}\0".encode())
            digest.update(data)
    return digest.hexdigest()


@cache
def templating() -> jinja2.Environment:
    """How templates are read and filled."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(resources.templates_dir()),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def image_environment(lock: Lock) -> dict[str, str]:
    """Environment variables of the image beside those of any shell."""
    return {
        # What a team installs on top must not move what TensorFlow was locked with.
        "PIP_CONSTRAINT": "/opt/tfenv/constraints.txt",
        "UV_CONSTRAINT": "/opt/tfenv/constraints.txt",
        "CUDA_CACHE_PATH": "/home/tfenv/.cache/cuda",
        # The driver's default of 1 GiB does not hold the kernels of a wheel compiled from PTX.
        "CUDA_CACHE_MAXSIZE": str(4 << 30),
        "NVIDIA_VISIBLE_DEVICES": "all",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        "NVIDIA_REQUIRE_CUDA": lock.require_cuda,
    }


def image_labels(cell: Cell, lock: Lock, lock_hash: str, *, locked: bool) -> dict[str, str]:
    """OCI annotations as labels, and the stack under the project's own prefix."""
    row = cell.row
    return {
        "org.opencontainers.image.title": cell.name,
        "org.opencontainers.image.description": (
            f"TensorFlow {row.tensorflow}, CUDA {cell.cuda_set.cuda}, cuDNN {cell.cuda_set.cudnn}, "
            f"Python {cell.python} on {cell.base.name}"
        ),
        "org.opencontainers.image.version": row.tensorflow,
        "org.opencontainers.image.created": rfc3339(lock.epoch),
        f"{LABEL_PREFIX}.cell": cell.name,
        f"{LABEL_PREFIX}.tensorflow": row.tensorflow,
        f"{LABEL_PREFIX}.cuda": cell.cuda_set.cuda,
        f"{LABEL_PREFIX}.cudnn": cell.cuda_set.cudnn,
        f"{LABEL_PREFIX}.python": cell.python,
        f"{LABEL_PREFIX}.cuda-from": lock.cuda_from,
        f"{LABEL_PREFIX}.lock": f"sha256:{lock_hash}",
        f"{LABEL_PREFIX}.locked": "true" if locked else "false",
    }


def trim_arguments(lock: Lock, *, cuda: bool) -> str:
    """Of NVIDIA's wheels or of all others: so that what one row leaves out does not fork a shared layer."""

    def words(rules: tuple[Rule, ...]) -> list[str]:
        return [rule.what for rule in rules if rule.what.startswith("nvidia/") == cuda]

    kept = words(lock.keep)
    found = [*words(lock.trim), *(["--keep", *kept] if kept else [])]
    return "".join(f" \\\n      {shlex.quote(word)}" for word in found)


def render(cell: Cell, lock: Lock, *, locked: bool = True) -> dict[str, str]:
    """The generated files of a cell, by name.

    Args:
        locked: false marks an image built from other inputs than the committed lock's.
    """
    from tfenv import lockfile

    template = templating().get_template(f"Dockerfile.{cell.base.kind}.j2")
    python = f"python{cell.python}" if lock.interpreter is None else f"{PROVIDED}/bin/python{cell.python}"
    dockerfile = template.render(
        cell=cell,
        lock=lock,
        python=python,
        python_epoch=unix(lock.interpreter.released) if lock.interpreter else 0,
        environment=image_environment(lock),
        labels=image_labels(cell, lock, lockfile.lock_hash(lock), locked=locked and lock.complete),
        site_packages=f"{VENV}/lib/python{cell.python}/site-packages",
        trim_cuda=trim_arguments(lock, cuda=True),
        trim_python=trim_arguments(lock, cuda=False),
    )
    return {"Dockerfile": dockerfile, "requirements.lock": lockfile.requirements_lock(lock)}


def drift(folder: Path, files: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the files under ``folder`` that are missing or differ."""

    def differs(name: str, text: str) -> bool:
        try:
            return (folder / name).read_bytes() != text.encode()
        except FileNotFoundError:
            return True

    return tuple(name for name, text in files.items() if differs(name, text))


def require_current_template(cell: Cell, lock: Lock) -> None:
    """Refuse a lock made for other templates: rendering it would not give what was locked.

    Raises:
        UsageError: the lock names another template version.
    """
    if lock.template != template_version(cell.base.kind):
        raise UsageError(
            f"the lock of {cell.name} was made for another version of the templates",
            remedy=f"type: tfenv lock {cell.name}   (keeps every pin, follows the templates)",
        )


def raise_drift(drifted: Mapping[str, tuple[str, ...]]) -> None:
    """Raise DriftError naming every generated file that is not what it should be, if any."""
    names = [f"images/{cell}/{name}" for cell, files in sorted(drifted.items()) for name in files]
    if names:
        raise DriftError(
            "generated files differ from what matrix.yaml and the locks give:\n  " + "\n  ".join(names),
            remedy="type: tfenv render   and commit the result",
        )


def raise_orphans(images: Path, cells: Set[str]) -> None:
    """Raise DriftError naming every folder of generated files whose cell the matrix no longer has."""
    found = (folder.name for folder in images.iterdir() if (folder / "Dockerfile").is_file())
    if orphans := sorted(set(found) - cells) if images.is_dir() else []:
        raise DriftError(
            "the matrix has no such cells: " + ", ".join(f"images/{name}" for name in orphans),
            remedy="type: git rm -r " + " ".join(f"images/{name}" for name in orphans),
        )
