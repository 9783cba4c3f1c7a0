"""Unpack an image's archive into a folder, for a GPU host without Docker; see ``rootfs_run``.

Beside ``FOLDER`` a ``FOLDER.json`` says which image it is. ``python3 -m tfenv.rootfs_unpack ARCHIVE FOLDER``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tfenv import oci
from tfenv.alone import run_alone
from tfenv.errors import IntegrityError, NotReadyError, UsageError
from tfenv.files import write_all
from tfenv.unpacked import Unpacked, read_unpacked

_CHUNK = 1 << 20  # bytes


def unpack(archive: Path, folder: Path) -> Unpacked:
    """Unpack all layers of the OCI ``archive`` into ``folder``, which must not be there.

    Raises:
        UsageError: the folder is there, or the image has no /usr. IntegrityError: the archive is not whole.
        NotReadyError: no room, or no tar.
    """
    if folder.exists():
        raise UsageError(f"{folder} is there already", remedy=f"remove it: rm -r {folder}")
    oci.verify_blobs(archive)
    image = oci.describe(archive)
    passing = folder.with_name(f".{folder.name}.unpacking")
    shutil.rmtree(passing, ignore_errors=True)
    passing.mkdir(parents=True)
    try:
        for layer in image.layers:
            _unpack_layer(archive, layer, passing)
        if not (passing / "usr").is_dir():
            raise UsageError(
                "the image has no /usr: it is no image with a TensorFlow",
                remedy="unpack that of a cell: `docker save` of it, or its archive of `tfenv build`",
            )
        # By that digest `verify --image` and a registry know it, too.
        told = {"manifest": image.digest, "config": image.config.get("config") or {}}
        # Nothing that is not whole may be called this image: the folder has no name before it has all files.
        about = folder.with_name(folder.name + ".json")
        about.unlink(missing_ok=True)
        passing.rename(folder)
    except BaseException:
        shutil.rmtree(passing, ignore_errors=True)
        raise
    try:
        write_all(about.parent, {about.name: json.dumps(told) + "\n"})
        return read_unpacked(folder)
    except BaseException:
        about.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _unpack_layer(archive: Path, layer: oci.LayerBlob, folder: Path) -> None:
    """One layer with the system's tar, which keeps owners, modes and links; then what it removes."""
    if shutil.which("tar") is None:
        raise NotReadyError("this host has no tar", remedy="install tar")
    command = ["tar", "-C", str(folder), "--exclude=.wh.*", "-xpf", "-"]
    removed = []
    with oci.opened(archive, layer) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
        inside = _Inside(folder)
        for member in tar:
            inside.require(member.name)
            if member.islnk():
                inside.require(member.linkname)
            if Path(member.name).name.startswith(".wh."):
                removed.append(member.name)
    for name in removed:
        _remove(folder, name)
    # Into a file: it may have more to say than a pipe holds, as where the clock is wrong.
    with oci.opened(archive, layer) as stream, tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=said)
        assert process.stdin is not None
        try:
            with contextlib.suppress(BrokenPipeError):  # tar has ended, and says why
                shutil.copyfileobj(stream, process.stdin, _CHUNK)
                process.stdin.close()
            status = process.wait()
        finally:
            process.kill()
            process.wait()
        if status:
            said.seek(0)
            lines = said.read(_CHUNK).decode("utf-8", "replace").strip().splitlines()
            raise NotReadyError(
                f"{layer.digest} could not be unpacked: {lines[0] if lines else 'tar failed'}",
                remedy="free space in that folder, and unpack as root",
            )


class _Inside:
    """Proves that members of an archive stay in a folder, whatever links lower layers have put there."""

    def __init__(self, folder: Path) -> None:
        self._root = folder.resolve()
        self._good: set[Path] = set()

    def require(self, name: str) -> None:
        """Raises IntegrityError: ``name`` would be written elsewhere on this host."""
        parent = (self._root / name.lstrip("/")).parent
        if parent in self._good:
            return
        where = parent.resolve()
        if where != self._root and self._root not in where.parents:
            raise IntegrityError(
                f"a layer writes {name}, outside of the image", remedy="do not use this image"
            )
        self._good.add(parent)


def _remove(folder: Path, whiteout: str) -> None:
    """What a whiteout of an upper layer takes away from the lower ones."""
    where = (folder / whiteout).parent
    if where.resolve() != where.absolute() or folder.absolute() not in [
        where.absolute(),
        *where.absolute().parents,
    ]:
        raise IntegrityError(
            f"a layer removes {whiteout}, outside of the image", remedy="do not use this image"
        )
    name = Path(whiteout).name.removeprefix(".wh.")
    gone = list(where.iterdir()) if name == ".wh..opq" and where.is_dir() else [where / name]
    for path in gone:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def main(argv: Sequence[str]) -> int:
    """``python3 -m tfenv.rootfs_unpack ARCHIVE FOLDER``."""
    parser = argparse.ArgumentParser(prog="python3 -m tfenv.rootfs_unpack", description=__doc__)
    parser.add_argument("archive", type=Path, help="OCI archive, as of `tfenv build`")
    parser.add_argument("folder", type=Path, help="where to; it must not be there")
    given = parser.parse_args(list(argv))
    unpack(given.archive, given.folder)
    return 0


if __name__ == "__main__":
    run_alone(main, sys.argv[1:])
