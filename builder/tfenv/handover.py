"""What a builder hands over of an image that extends another: all but the layers that are here already.

A builder streams an archive at some tens of MB a second, and the layers of a TensorFlow row are 1.6 GB. Into
a folder it writes only blobs that are not there yet, so empty files stand there for the layers of the other
image. The archive is put together here, and holds what the builder would have written.
"""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path

from tfenv import oci

_BLOBS = "blobs/sha256"


def into_folder(argv: Sequence[str], archive: Path, folder: Path, base: Path) -> list[str]:
    """The command line of a build with its archive's output turned into that folder, made ready for it.

    Args:
        base: archive of the image that it extends.
    """
    blobs = folder / _BLOBS
    blobs.mkdir(parents=True)
    for layer in oci.describe(base).layers:
        (blobs / layer.digest.removeprefix("sha256:")).touch()
    changed = list(argv)
    where = changed.index("--output") + 1
    changed[where] = changed[where].replace(str(archive), str(folder), 1) + ",tar=false"
    return changed


def pack(folder: Path, base: Path, archive: Path) -> None:
    """Write the archive from what the builder handed over and from the layers of ``base``; remove the folder.

    Only names and sizes are looked at: whether each blob has its own hash, ``oci.verify_blobs`` tells.
    """
    with tarfile.open(archive, "w") as out, tarfile.open(base, "r:") as below:
        theirs = {member.name.removeprefix("./"): member for member in below if member.isfile()}
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            info = tarfile.TarInfo(path.relative_to(folder).as_posix())
            info.mode = 0o444
            info.size = path.stat().st_size
            if info.size or info.name not in theirs:
                with path.open("rb") as stream:
                    out.addfile(info, stream)
                continue
            info.size = theirs[info.name].size
            out.addfile(info, below.extractfile(theirs[info.name]))
    shutil.rmtree(folder)
