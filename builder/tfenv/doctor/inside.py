"""Look from within a container: the part that runs in any image with a Python, mounted and not baked in."""

from __future__ import annotations

import json
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfenv.container import Bind, ProgramMissingError, Spec
from tfenv.errors import EXIT_FAILED, EXIT_UNVERIFIED, NotReadyError, UsageError
from tfenv.progress import clean

from .sources import Sources

if TYPE_CHECKING:
    from tfenv.console import Console
    from tfenv.verify import Start

NAME = "doctor.pyz"
_FOLDER = "/tfenv"  # where it is mounted
_LIMIT = 420  # seconds
_MOST = 1 << 20  # bytes of what it says; it is some kilobytes
_PYTHONS = ("python", "python3")


def pack(folder: Path | None = None) -> bytes:
    """The zipapp ``doctor.pyz``."""
    from tfenv import pyz
    from tfenv.resources import verifier_dir

    root = folder if folder is not None else verifier_dir()
    main = {"__main__.py": root / "tfenv_doctor" / "__main__.py"}
    return pyz.packed({**pyz.sources(root, "tfenv_doctor"), **main})


def doctor_in(name: str, *, deep: bool, as_json: bool, console: Console) -> int:
    """Run it in an image of this engine, with the host's GPUs if there are any, and tell what it says.

    Args:
        name: a cell, or any image that the engine has.

    Raises:
        UsageError: the engine does not have the image. NotReadyError: no engine, or the image has no Python.
    """
    from tfenv.commands._common import emit
    from tfenv.container import connect

    host = host_of(Sources())
    with connect() as containers:
        images, missing = _images(name, console)
        image = next((one for one in images if containers.inspect(one)), "")
        if not image:
            raise missing
        try:
            said, code = run_in(
                containers.container, image, host, deep=deep, as_json=as_json, gpus=bool(host["gpus"])
            )
        except NotReadyError as error:
            if not host["gpus"]:
                raise
            console.warn(f"with --gpus all it does not start: {error.message}")
            console.note("looking without GPUs; `tfenv doctor` says what is wrong with the host")
            said, code = run_in(containers.container, image, host, deep=deep, as_json=as_json, gpus=False)
            code = EXIT_FAILED
    if as_json:
        emit({"image": image, "host": host, **_object(said)}, as_json=True)
    else:
        emit({}, as_json=False, text=f"in {image}:\n\n{said.rstrip()}")
    return code


def host_of(sources: Sources) -> dict[str, Any]:
    """What the part inside is told: how many GPUs there are, and the driver; nothing is started for it."""
    import re

    try:
        text = sources.read("/proc/driver/nvidia/version") or ""
    except FileNotFoundError:
        text = ""
    version = re.search(r"Kernel Module[^\n]*?\s(\d{3}\.\d+(?:\.\d+)?)\b", text)
    nodes = [path for path in sources.matching("/dev/nvidia*") if re.fullmatch(r"/dev/nvidia\d+", path)]
    wsl = sources.node("/dev/dxg") is not None
    return {"gpus": len(nodes) or int(wsl), "driver": version[1] if version else ""}


def run_in(
    start: Start,
    image: str,
    host: dict[str, Any],
    *,
    deep: bool,
    as_json: bool,
    gpus: bool,
    packed: bytes | None = None,
) -> tuple[str, int]:
    """What it says in an image, and its exit code.

    Args:
        start: runs a container: ``Containers.container``.
        gpus: give it all of the host's.

    Raises:
        NotReadyError: it cannot be started, or the image has no Python.
    """
    arguments = ["--host", json.dumps(host), *(["--deep"] if deep else []), *(["--json"] if as_json else [])]
    with tempfile.TemporaryDirectory(prefix="tfenv-doctor-") as place:
        folder = Path(place)
        (folder / NAME).write_bytes(pack() if packed is None else packed)
        (folder / NAME).chmod(0o644)
        folder.chmod(0o755)
        for python in _PYTHONS:
            spec = Spec(
                image=image,
                entrypoint=(python,),
                command=("-B", f"{_FOLDER}/{NAME}", *arguments),
                read_only=False,
                binds=(Bind(folder, _FOLDER),),
                gpus=gpus,
            )
            try:
                return _said(start, spec)
            except ProgramMissingError:
                continue
    raise NotReadyError(f"{image} has no Python", remedy="name an image that has one")


def _said(start: Start, spec: Spec) -> tuple[str, int]:
    out = err = b""
    with start(spec) as running:
        watch = threading.Timer(_LIMIT, running.kill)
        watch.daemon = True
        watch.start()
        try:
            # The image may be anybody's, and so may the Python in it be that says this.
            for more_out, more_err in running.output():
                out = (out + more_out)[:_MOST]
                err = (err + more_err)[-_MOST:]
            ended = running.wait()
        finally:
            watch.cancel()
    told, why = (clean(said.decode("utf-8", "replace")) for said in (out, err))
    if ended.status not in (0, 1, 3, 4) or not told:
        last = why.strip().splitlines()
        return f"it ended with status {ended.status}: {last[-1] if last else 'no output'}", EXIT_UNVERIFIED
    return told, ended.status


def _images(name: str, console: Console) -> tuple[tuple[str, ...], UsageError]:
    """The names under which an image may be found, and what to raise where it has none of them.

    A cell's image has several, one that is held back its own; what is no cell's has that name.
    """
    from tfenv.meant import gone, image_meant
    from tfenv.store import default_store
    from tfenv.workspace import here_or_checkout

    try:
        workspace = here_or_checkout(lambda _said: None)
        named = image_meant(name, workspace, default_store().root)
    except UsageError:
        return (name,), UsageError(f"there is no image {name} here", remedy=f"type: docker pull {name}")
    named.tell(console.note)
    if named.held:
        return named.names, gone(named.held, named.cell)
    missing = UsageError(f"there is no image {named.names[0]} here", remedy=f"type: tfenv up {name}")
    return (*named.names, *workspace.tags(named.cell, ending="-stand-in")[:1]), missing


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {"error": {"message": text}}
    return found if isinstance(found, dict) else {}
