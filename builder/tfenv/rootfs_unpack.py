"""Unpack an image's archive into a folder, for a GPU host without Docker; see ``rootfs_run``.

Beside ``FOLDER`` a ``FOLDER.json`` says which image it is. ``python3 -m tfenv.rootfs_unpack ARCHIVE FOLDER``.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from tfenv import oci
from tfenv.errors import IntegrityError, NotReadyError, UsageError

from .rootfs_run import Unpacked, read_unpacked

_CHUNK = 1 << 20  # bytes


def unpack(archive: Path, folder: Path) -> Unpacked:
    """Unpack all layers of the OCI ``archive`` into ``folder``, which must not be there.

    Raises:
        UsageError: the folder is there. IntegrityError: the archive is not whole.
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
        told = {"manifest": image.manifest_digest, "config": image.config.get("config") or {}}
        folder.with_name(folder.name + ".json").write_text(json.dumps(told) + "\n", encoding="utf-8")
        passing.rename(folder)
    except BaseException:
        shutil.rmtree(passing, ignore_errors=True)
        raise
    return read_unpacked(folder)


def _unpack_layer(archive: Path, layer: oci.LayerBlob, folder: Path) -> None:
    """One layer with the system's tar, which keeps owners, modes and links; then what it removes."""
    if shutil.which("tar") is None:
        raise NotReadyError("this host has no tar", remedy="install tar")
    command = ["tar", "-C", str(folder), "--exclude=.wh.*", "-xpf", "-"]
    removed = []
    with oci.opened(archive, layer) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
        removed = [member.name for member in tar if Path(member.name).name.startswith(".wh.")]
    for name in removed:
        _remove(folder, name)
    with oci.opened(archive, layer) as stream:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdin is not None and process.stderr is not None
        try:
            shutil.copyfileobj(stream, process.stdin, _CHUNK)
            process.stdin.close()
        except BrokenPipeError:
            pass  # tar has ended, and says why
        said = process.stderr.read().decode("utf-8", "replace")
        if process.wait():
            why = said.strip().splitlines()[-1:] or ["tar failed"]
            raise NotReadyError(
                f"{layer.digest} could not be unpacked: {why[0]}", remedy="free space in that folder"
            )


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


if __name__ == "__main__":
    unpack(Path(sys.argv[1]), Path(sys.argv[2]))
