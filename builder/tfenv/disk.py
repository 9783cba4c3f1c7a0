"""Free space: an estimate of what a build needs, compared with what is there before it starts."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tfenv.errors import NotReadyError
from tfenv.model import Lock

GB = 1e9

# Measured on TensorFlow 2.15.1 with CUDA 12.2: the wheels' contents are 1.94 times their size (CUDA's
# 1.63, the others' 2.89), the .debs' 4.06 times. The .pyc files that are compiled come on top.
WHEEL_UNPACKED = 2.1
DEB_UNPACKED = 4.2
# An upper bound: zstd packs layers no worse than the wheels' deflate.
IMAGE_OF_WHEELS = 1.0
# BuildKit keeps each layer unpacked in its cache and exports it compressed, and the engine
# unpacks the loaded image once more.
UNPACKED_COPIES = 2
# The system's containerd, where its packages put it.
_CONTAINERD = Path("/var/lib/containerd")
_CONTAINERD_SOCKET = Path("/run/containerd/containerd.sock")
# Logs, records, the engine's own bookkeeping.
RESERVE = 200_000_000


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Bytes that a build still needs, per place: tfenv's ``store``, the ``engine``'s root folder."""

    store: int
    engine: int


def estimate(lock: Lock, have: Callable[[str, int], bool]) -> Estimate:
    """What fetching and building this lock will write.

    Args:
        have: (sha256, size) -> is it in the store already?

    An upper bound: trimmed files count, and layers that the engine shares with other images too.
    """
    inputs = {p.sha256: p.size for p in lock.debian} | {w.sha256: w.size for w in lock.wheels}
    download = sum(size for sha256, size in inputs.items() if not have(sha256, size))
    wheels = sum(w.size for w in lock.wheels if w.layer != "tool")
    debs = sum(p.size for p in lock.debian)
    image = int(IMAGE_OF_WHEELS * wheels) + debs
    unpacked = int(WHEEL_UNPACKED * wheels + DEB_UNPACKED * debs)
    return Estimate(
        store=download + image + RESERVE,
        # The exporter's copy and the loaded image's are both compressed.
        engine=UNPACKED_COPIES * unpacked + 2 * image + RESERVE,
    )


def engine_folder(
    root: Path,
    exists: Callable[[Path], bool] = Path.exists,
    owner: Callable[[Path], int] = lambda path: path.stat().st_uid,
) -> Path | None:
    """The folder in which an engine with this root folder keeps images and build cache, if it is here.

    An engine keeps them below its root with a containerd of its own, but where the system's containerd
    runs it uses that one, whose folder may be on another disk:
    github.com/moby/moby, systemContainerdRunning in the daemon's command. A rootless one never does.

    Args:
        owner: user id that owns an existing folder.
    """
    if not exists(root):
        return None
    shared = exists(_CONTAINERD_SOCKET) and exists(_CONTAINERD) and owner(root) == 0
    return _CONTAINERD if shared else root


def check_space(
    path: Path, need_bytes: int, probe: Callable[[Path], int] | None = None, *, what: str = ""
) -> None:
    """Raise NotReadyError unless ``need_bytes`` are free where ``path`` is or will be.

    Args:
        probe: free bytes for this user at an existing folder.
        what: what the space is for, e.g. ``the store``.
    """
    probe = probe or (lambda folder: shutil.disk_usage(folder).free)
    folder = path
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    free = probe(folder)
    if free < need_bytes:
        raise NotReadyError(
            f"not enough disk space for {what or path}: {need_bytes / GB:.1f} GB needed at "
            f"{path}, {free / GB:.1f} GB free",
            remedy="free some: `tfenv gc` (tfenv's store), `docker builder prune` and "
            "`docker image prune` (the engine); or set TFENV_CACHE to a larger disk",
        )


def check_all(
    needs: dict[Path, int],
    probe: Callable[[Path], int] | None = None,
    device: Callable[[Path], int] | None = None,
) -> None:
    """``check_space`` for several folders; those on one filesystem have to fit in it together.

    Args:
        needs: bytes by folder; one that is not there yet is made.
        device: number of the filesystem of an existing folder.
    """
    device = device or (lambda folder: folder.stat().st_dev)
    together: dict[int, list[Path]] = {}
    for path in needs:
        _make(path)
        together.setdefault(device(path), []).append(path)
    for paths in together.values():
        names = " and ".join(str(path) for path in paths)
        check_space(paths[0], sum(needs[path] for path in paths), probe, what=names)


def _make(folder: Path) -> None:
    # A folder that cannot be made is another problem than a full disk: /proc/x has no free space either.
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotReadyError(
            f"cannot make the folder {folder}: {error.strerror or error}",
            remedy="set TFENV_CACHE to a folder that you can write, on a disk with room",
        ) from error
