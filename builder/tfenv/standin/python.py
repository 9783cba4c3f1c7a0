"""A Python to go with a stand-in: the provider's folder layout, with a link to the base's own interpreter."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path


def write_python_tar(python: str, destination: Path, *, epoch: int) -> None:
    """Write a .tar.gz that unpacks like the provider's: ``python/bin/python3.11``.

    Args:
        python: ``3.11``; epoch: Unix seconds, the time of all members.
    """
    with destination.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for folder in ("python", "python/bin", "python/lib", f"python/lib/python{python}"):
                entry = tarfile.TarInfo(folder)
                entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, epoch
                archive.addfile(entry)
            link = tarfile.TarInfo(f"python/bin/python{python}")
            link.type, link.mode, link.mtime = tarfile.SYMTYPE, 0o777, epoch
            link.linkname = f"/usr/bin/python{python}"
            archive.addfile(link)
        packed.write(data.getvalue())
