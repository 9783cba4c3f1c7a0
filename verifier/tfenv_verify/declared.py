"""What the host says about the image: ``declared.json``. Every key may be absent."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from .protocol import UsageError

FORMAT = 1


@dataclass(frozen=True)
class Library:
    """One shared library that TensorFlow opens; ``version`` is the locked wheel's, if known."""

    name: str
    soname: str
    version: str = ""
    wheel: str = ""


@dataclass(frozen=True)
class Kernels:
    """What holds for GPUs of compute capability ``first`` to ``last`` (empty: all newer ones)."""

    what: str
    first: str
    last: str = ""
    why: str = ""


@dataclass(frozen=True)
class Declared:
    """The declaration. A foreign image declares nothing: every field is empty.

    ``cuda`` and ``cudnn`` are what the tag says; ``compiled_*`` what the wheel was compiled for.
    ``compiled_nccl_how`` is ``linked`` (in) or ``loaded`` (from outside).
    ``compiled_sass`` holds the compute capabilities with machine code for every kernel, ``compiled_ptx``
    what is only PTX, ``compiled_unusable`` what is neither; ``nccl_sass`` those of a linked NCCL.
    ``cuda_folders`` are where all CUDA libraries are that the process may load; empty: anywhere.
    ``unused`` holds globs of CUDA libraries outside of these that may be in the image, unloaded.
    ``absent`` holds sonames of libraries that the image is known to lack.
    ``ptxas`` is the version of the locked wheel that brings it, if one does.
    ``packages`` are the names of the locked distributions, if they are told.
    ``keep`` holds globs under site-packages of files that are kept on purpose.
    """

    cell: str = ""
    image: str = ""
    tensorflow: str = ""
    python: str = ""
    cuda: str = ""
    cudnn: str = ""
    compiled_cuda: str = ""
    compiled_cudnn: str = ""
    compiled_nccl: str = ""
    compiled_nccl_how: str = ""
    compiled_sass: tuple[str, ...] = ()
    compiled_ptx: tuple[Kernels, ...] = ()
    compiled_unusable: tuple[Kernels, ...] = ()
    nccl_sass: tuple[str, ...] = ()
    libraries: tuple[Library, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    cuda_from: str = ""
    cuda_folders: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    ptxas: str = ""
    record_exact: bool = False
    keep: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()

    @property
    def foreign(self) -> bool:
        """Whether the image is not one of ours: it names no cell."""
        return not self.cell


def parse(data: Any) -> Declared:
    """Turn decoded JSON into a declaration.

    Raises:
        UsageError: a key has the wrong type, or the format is newer than this suite.
    """
    top = _object(data, "declared.json")
    if top.get("format", FORMAT) != FORMAT:
        raise UsageError(f"declared.json has format {top['format']!r}; this suite reads format {FORMAT}")
    compiled = _object(top.get("compiled"), "compiled")
    nccl = _object(compiled.get("nccl"), "compiled.nccl")
    return Declared(
        cell=_text(top, "cell"),
        image=_text(top, "image"),
        tensorflow=_text(top, "tensorflow"),
        python=_text(top, "python"),
        cuda=_text(top, "cuda"),
        cudnn=_text(top, "cudnn"),
        compiled_cuda=_text(compiled, "cuda"),
        compiled_cudnn=_text(compiled, "cudnn"),
        compiled_nccl=_text(nccl, "version"),
        compiled_nccl_how=_text(nccl, "how"),
        compiled_sass=_texts(compiled, "sass"),
        compiled_ptx=tuple(_kernels(item, "compiled.ptx") for item in _list(compiled, "ptx")),
        compiled_unusable=tuple(_kernels(item, "compiled.unusable") for item in _list(compiled, "unusable")),
        nccl_sass=_texts(nccl, "sass"),
        libraries=tuple(_library(item) for item in _list(top, "libraries")),
        env={key: str(value) for key, value in _object(top.get("env"), "env").items()},
        cuda_from=_text(top, "cuda_from"),
        cuda_folders=_texts(top, "cuda_folders"),
        unused=tuple(_rule(item, "unused") for item in _list(top, "unused")),
        absent=tuple(_rule(item, "absent") for item in _list(top, "absent")),
        ptxas=_text(top, "ptxas"),
        record_exact=bool(_object(top.get("record"), "record").get("exact", False)),
        packages=_texts(top, "packages"),
        keep=tuple(_rule(item, "keep") for item in _list(top, "keep")),
    )


def load(path: str) -> Declared:
    """Read a declaration; an empty path declares nothing.

    Raises:
        UsageError: the file cannot be read or is not what is expected.
    """
    if not path:
        return Declared()
    try:
        with open(path, encoding="utf-8") as stream:
            return parse(json.load(stream))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error


def sha256(path: str) -> str:
    """Hex, of what a declaration says, its image's name aside: lines judged elsewhere are held to it.

    Raises:
        UsageError: the file cannot be read.
    """
    told: Any = {"format": FORMAT}
    try:
        if path:
            with open(path, encoding="utf-8") as stream:
                told = json.load(stream)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    without = {key: value for key, value in told.items() if key != "image"}
    return hashlib.sha256(json.dumps(without, sort_keys=True).encode("utf-8")).hexdigest()


def _library(item: Any) -> Library:
    entry = _object(item, "libraries[]")
    library = Library(
        name=_text(entry, "name"),
        soname=_text(entry, "soname"),
        version=_text(entry, "version"),
        wheel=_text(entry, "wheel"),
    )
    if not library.name or not library.soname:
        raise UsageError("declared.json: each of libraries needs a name and a soname")
    return library


def _kernels(item: Any, key: str) -> Kernels:
    entry = _object(item, key + "[]")
    found = Kernels(_text(entry, "what"), _text(entry, "from"), _text(entry, "until"), _text(entry, "why"))
    if not found.what or not found.first:
        raise UsageError(f"declared.json: each of {key} needs what and from")
    return found


def _rule(item: Any, key: str) -> str:
    found = item if isinstance(item, str) else _text(_object(item, key + "[]"), "what")
    if not found:
        raise UsageError(f"declared.json: each of {key} needs to say what")
    return found


def _object(value: Any, where: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UsageError(f"declared.json: {where} should be an object, not {value!r}")
    return value


def _text(entry: dict[str, Any], key: str) -> str:
    value = entry.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise UsageError(f"declared.json: {key} should be a string, not {value!r}")
    return value


def _texts(entry: dict[str, Any], key: str) -> tuple[str, ...]:
    value = _list(entry, key)
    if not all(isinstance(item, str) and item for item in value):
        raise UsageError(f"declared.json: {key} should hold strings, not {value!r}")
    return tuple(value)


def _list(entry: dict[str, Any], key: str) -> list[Any]:
    value = entry.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise UsageError(f"declared.json: {key} should be a list, not {value!r}")
    return value
