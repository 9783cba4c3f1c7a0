"""The essential Debian packages unpacked into one tar: what a chroot needs before dpkg can run in it.

This is the first stage of every Debian bootstrap, done in pure Python so that a build needs neither root
nor a Debian host, and so that its bytes depend on the packages alone.
"""

from __future__ import annotations

import copy
import hashlib
import io
import lzma
import re
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from tfenv.errors import IntegrityError

# Merged /usr: the top-level folders are links, the only layout from Debian 12 on, and the default before.
_MERGED = ("bin", "sbin", "lib", "lib64")
# The same files that tools/bootstrap.sh tells dpkg to leave out.
_LEFT_OUT = re.compile(
    r"usr/share/(?:info|lintian|locale|man)/.+"
    r"|usr/share/doc/(?!apt/examples/(?:sources\.list|debian\.sources)$)(?!.*/copyright$).*[^/]$"
)

_ANEW = "have it fetched anew: tfenv gc --everything, then type the command again"


def recipe_version() -> str:
    """sha256 of this module: changes when the bytes that it writes may."""
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()


def _data_tar(deb: Path) -> bytes:
    """The data.tar member of a .deb, which is an ``ar`` archive (man 5 deb)."""
    with deb.open("rb") as file:
        if file.read(8) != b"!<arch>\n":
            raise IntegrityError(f"{deb.name} is not a Debian package", remedy=_ANEW)
        while header := file.read(60):
            name = header[:16].decode("ascii", "replace").strip().rstrip("/")
            try:
                size = int(header[48:58])
            except ValueError:
                break
            if name.startswith("data.tar"):
                return file.read(size)
            file.seek(size + (size & 1), io.SEEK_CUR)
    raise IntegrityError(f"{deb.name} holds no data.tar", remedy=_ANEW)


def _merged(name: str) -> str:
    """A member's path with ``./`` removed and the merged-/usr links followed."""
    path = name.removeprefix("./").strip("/")
    head, _, rest = path.partition("/")
    if head in _MERGED and rest:
        path = f"usr/{path}"
    if ".." in path.split("/"):
        raise IntegrityError(
            f"a Debian package names a file outside its root: {name!r}",
            remedy="lock the cell anew from a mirror that you trust",
        )
    return path


def _members(deb: Path) -> Iterator[tuple[tarfile.TarInfo, bytes | None]]:
    """Each member with its bytes; those of a hard link are the bytes of what it links to."""
    try:
        with tarfile.open(fileobj=io.BytesIO(_data_tar(deb)), mode="r:*") as archive:
            for member in archive:
                file = archive.extractfile(member) if member.isreg() or member.islnk() else None
                # A copy: the archive finds the targets of hard links by the names it read.
                yield copy.copy(member), file.read() if file else None
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, KeyError) as error:
        raise IntegrityError(f"{deb.name} cannot be unpacked: {error}", remedy=_ANEW) from error


def _entry(name: str, kind: bytes, mode: int, epoch: int, target: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.mtime, entry.linkname = kind, mode, epoch, target
    return entry


def write_essential_tar(debs: Sequence[Path], destination: Path, *, epoch: int) -> None:
    """Write the files of ``debs`` as one tar archive; the same packages give the same bytes.

    Args:
        debs: .deb files, in a fixed order.
        destination: the tar to write.
        epoch: Unix seconds; later file times are clamped to it.

    Raises:
        IntegrityError: a file is no Debian package, or names a path outside its root.
    """
    seen: set[str] = set(_MERGED)
    with tarfile.open(destination, "w", format=tarfile.GNU_FORMAT) as out:
        for name in ("usr", *(f"usr/{name}" for name in _MERGED)):
            out.addfile(_entry(name, tarfile.DIRTYPE, 0o755, epoch))
            seen.add(name)
        for name in _MERGED:
            out.addfile(_entry(name, tarfile.SYMTYPE, 0o777, epoch, f"usr/{name}"))
        for deb in debs:
            for member, data in _members(deb):
                member.name = _merged(member.name)
                if not member.name or member.name in seen or _LEFT_OUT.fullmatch(member.name):
                    continue
                seen.add(member.name)
                if member.islnk():
                    member.linkname = _merged(member.linkname)
                if data is not None and (member.isreg() or member.linkname not in seen):
                    # A file, also where it was stored with holes, or as a link to one that is left out.
                    member.type, member.size, member.linkname = tarfile.REGTYPE, len(data), ""
                else:
                    data = None
                member.mtime = min(member.mtime, epoch)
                member.uname = member.gname = ""
                out.addfile(member, io.BytesIO(data) if data is not None else None)
        for name in ("var/lib/dpkg", "var/lib/dpkg/info", "var/lib/dpkg/updates"):
            if name not in seen:
                out.addfile(_entry(name, tarfile.DIRTYPE, 0o755, epoch))
        for name in ("var/lib/dpkg/status", "var/lib/dpkg/available"):
            out.addfile(_entry(name, tarfile.REGTYPE, 0o644, epoch), io.BytesIO(b""))
