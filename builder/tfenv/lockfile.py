"""Read and write locks: one canonical form, so that equal locks are equal files and diffs read."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tfenv.errors import TfenvError
from tfenv.files import LOCK_NAME as LOCK_NAME
from tfenv.model import Layer, Lock, Wheel
from tfenv.plain import from_plain, to_plain
from tfenv.times import instant

FORMAT = 2
REQUIREMENTS_NAME = "requirements.lock"

_LAYERS: dict[Layer, str] = {
    "cuda": "NVIDIA's libraries: one layer for every Python",
    "python": "TensorFlow and what it needs",
    "source": "in the same layer: of these there is no wheel, so one is made from the source archive",
    "tool": "the installer: not in the image",
}
# [0-9] and not \d, which is any digit of Unicode.
# What a value may look like, by field name: these end up in file names and build steps.
_SHAPES: dict[str, re.Pattern[str]] = {
    "name": re.compile(r"[a-z0-9][a-z0-9.+_-]*"),
    "version": re.compile(r"[A-Za-z0-9][A-Za-z0-9.+~:!_-]*"),
    "architecture": re.compile(r"[a-z0-9][a-z0-9-]*"),
    "sha256": re.compile(r"[0-9a-f]{64}"),
    "filename": re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]*\.(?:whl|tar\.gz)"),
    "path": re.compile(r"pool/(?:[A-Za-z0-9][A-Za-z0-9.+~_-]*/)+[A-Za-z0-9][A-Za-z0-9.+~:_%-]*\.deb"),
    "cell": re.compile(r"[a-z0-9][a-z0-9._-]*"),
    # Globs and reasons: nothing that could end a line or a quoted word in a build step.
    "what": re.compile(r"[^\s'\"`$\\;&|<>()#]+"),
    "why": re.compile(r"[^\x00-\x1f\x7f]*"),
    "platform": re.compile(r"[a-z0-9]+/[a-z0-9]+"),
    "suite": re.compile(r"(?:[a-z0-9][a-z0-9-]*)?"),
    "base_image": re.compile(r"(?:[a-z0-9][a-z0-9._/:-]*:[A-Za-z0-9_][A-Za-z0-9_.-]*)?"),
    "base_digest": re.compile(r"(?:sha256:[0-9a-f]{64})?"),
    "wheel_platform": re.compile(r"[a-z0-9_]+-manylinux_[0-9]+_[0-9]+"),
    "released": re.compile(r"[0-9]{4}-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]Z"),
    "provider": re.compile(r"[a-z0-9-]+"),
    "target": re.compile(r"lib[A-Za-z0-9_]+\.so[0-9.]*"),
    "template": re.compile(r"[0-9a-f]{64}"),
    "requirements": re.compile(r"[A-Za-z0-9][^\x00-\x1f\x7f]*"),
    "debian_packages": re.compile(r"[a-z0-9][a-z0-9.+-]*"),
    "require_cuda": re.compile(r"cuda>=[0-9]+\.[0-9]+(?:[ ,](?:cuda|arch)(?:>=|<)[0-9]+\.[0-9]+)*"),
    "uv": re.compile(r"[0-9][A-Za-z0-9.+]*"),
    "exclude_newer": re.compile(r"[0-9]{4}-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]Z"),
    "debian_locked_at": re.compile(r"(?:[0-9]{4}-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]Z)?"),
}
# The same, where a name means something else in one place.
_NESTED: dict[str, re.Pattern[str]] = {
    "interpreter.filename": re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*\.tar\.gz"),
    "interpreter.path": re.compile(r"[0-9]+/[A-Za-z0-9][A-Za-z0-9._+-]*\.tar\.gz"),
    "links.name": re.compile(r"lib[A-Za-z0-9_]+\.so[0-9.]*"),
}


def dump_lock(lock: Lock) -> str:
    """The canonical text: keys sorted, one package per line, a newline at the end."""
    return canonical(lock)


def canonical(lock: object) -> str:
    """The canonical text of a dataclass of any kind of lock."""
    lines = []
    for key, value in sorted(to_plain(lock).items()):
        if isinstance(value, list) and value:
            items = ",\n    ".join(_compact(item) for item in value)
            lines.append(f"  {json.dumps(key)}: [\n    {items}\n  ]")
        else:
            lines.append(f"  {json.dumps(key)}: {_compact(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def lock_hash(lock: Lock) -> str:
    """sha256 in hex of the canonical bytes: the identity of everything a build reads."""
    return hashlib.sha256(dump_lock(lock).encode()).hexdigest()


def load_lock(text: str, *, where: str = LOCK_NAME) -> Lock:
    """Parse a lock and check every value. Raises TfenvError that names ``where`` and the field."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _bad(where, f"it is cut off or not JSON ({error})") from error
    if not isinstance(data, dict):
        raise _bad(where, "it is no lock")
    if data.get("format") != FORMAT:
        raise _bad(
            where,
            f"its format is {data.get('format')!r}, this tfenv reads format {FORMAT}",
            "use the tfenv that wrote it, or lock the cell anew",
        )
    try:
        lock = from_plain(Lock, data, check=check_shape)
        check_lock(lock)
    except ValueError as error:
        raise _bad(where, str(error)) from error
    if dump_lock(lock) != text:
        raise _bad(where, "it was reformatted or edited by hand (it is not in canonical form)")
    return lock


def read_lock(path: Path) -> Lock:
    """Read ``images/<cell>/lock.json``. Raises TfenvError when it is absent, damaged or misplaced."""
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        cell = path.parent.name
        raise TfenvError(f"{cell} is not locked: no {path}", remedy=f"tfenv lock {cell}") from error
    except (OSError, ValueError) as error:
        raise _bad(str(path), f"it cannot be read ({error})") from error
    lock = load_lock(text, where=str(path))
    if lock.cell != path.parent.name:
        raise _bad(str(path), f"it is the lock of another cell, {lock.cell}")
    return lock


def requirement_lines(wheels: Iterable[Wheel], layer: Layer) -> tuple[str, ...]:
    """``name==version --hash=sha256:...`` of one layer, sorted; for pip and uv alike."""
    return tuple(
        f"{w.name}=={w.version} --hash=sha256:{w.sha256}"
        for w in sorted(wheels, key=lambda w: w.name)
        if w.layer == layer
    )


def requirements_lock(lock: Lock) -> str:
    """All wheels of the image as a requirements file that any pip can install from."""
    parts = [
        f"# {lock.cell}: every wheel by hash, generated by `tfenv lock`; do not edit.",
        f"# Nothing uploaded after {lock.exclude_newer}. For pip: --no-deps --require-hashes.",
    ]
    for layer, meaning in _LAYERS.items():
        lines = requirement_lines(lock.wheels, layer)
        if layer == "tool":  # named, but no part of what an installation needs
            lines = tuple(f"# {line}" for line in lines)
        if lines:
            parts += ["", f"# layer {layer}: {meaning}", *lines]
    return "\n".join(parts) + "\n"


def _compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def check_shape(where: str, value: Any) -> None:
    """Raise ValueError where a text or number of a lock is not what its field's name admits."""
    where_ = re.sub(r"\[\d+\]", "", where)
    shape = _NESTED.get(where_) or _SHAPES.get(where_.rsplit(".", 1)[-1])
    if isinstance(value, str) and shape and not shape.fullmatch(value):
        raise ValueError(f"{where}: {value!r} is not allowed there")
    if type(value) is int and value < 0:
        raise ValueError(f"{where}: {value} is negative")


def check_lock(lock: Lock) -> None:
    """What holds between values: no package twice, and files that are what their names say."""
    from packaging.utils import (
        InvalidSdistFilename,
        InvalidWheelFilename,
        canonicalize_version,
        parse_sdist_filename,
        parse_wheel_filename,
    )

    for kind, names in (
        ("debian", [p.name for p in lock.debian]),
        ("wheels", [f"{w.name} ({w.layer})" for w in lock.wheels]),
    ):
        if len(set(names)) != len(names):
            twice = sorted({n for n in names if names.count(n) > 1})
            raise ValueError(f"{kind}: {', '.join(twice)} is there twice")
        if names != sorted(names):
            raise ValueError(f"{kind}: not sorted by name")
    _check_base(lock)
    for rule in (*lock.trim, *lock.keep):
        if rule.what.startswith("/") or ".." in rule.what.split("/"):
            raise ValueError(f"{rule.what!r} leaves the folder that it is meant for")
    for wheel in lock.wheels:
        try:
            parse = parse_sdist_filename if wheel.layer == "source" else parse_wheel_filename
            name, version, *_ = parse(wheel.filename)
        except (InvalidWheelFilename, InvalidSdistFilename) as error:
            raise ValueError(f"wheels: {error}") from error
        same = canonicalize_version(str(version)) == canonicalize_version(wheel.version)
        if name != wheel.name or not same:
            raise ValueError(f"wheels: {wheel.filename} is not {wheel.name} {wheel.version}")


def _check_base(lock: Lock) -> None:
    """A base is an image with the provider's Python, or a bootstrap with Debian packages."""
    if lock.base_image and lock.interpreter is None:
        raise ValueError(f"interpreter: {lock.base_image} brings no Python, so there has to be one")
    if lock.base_image and (lock.debian or lock.suite):
        raise ValueError(f"debian: {lock.base_image} is not bootstrapped, so there can be none")
    if lock.base_digest and not lock.base_image:
        raise ValueError("base_digest: there is no base_image that has it")
    if lock.cuda_from == "base" and not lock.base_image:
        raise ValueError("cuda_from: there is no base_image that could bring CUDA")
    if lock.interpreter is not None:
        instant(lock.interpreter.released)


def _bad(where: str, reason: str, remedy: str = "") -> TfenvError:
    return TfenvError(
        f"{where} cannot be used: {reason}",
        remedy=remedy or "restore the committed file (git checkout), or lock the cell anew",
    )
