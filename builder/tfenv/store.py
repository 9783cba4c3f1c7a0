"""The content-addressed store on this host: inputs and archives by sha256, and records of builds."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tfenv.errors import IntegrityError, NotReadyError, UsageError
from tfenv.files import sha256_of, sync

# https://bford.info/cachedir/: backups leave such folders out
MARK = "CACHEDIR.TAG"
MARK_TEXT = "Signature: 8a477f597d28d172789f06886806bc55\n# The store of tfenv.\n"
# What may be kept before the first file is fetched.
_EARLY = frozenset({"bisect", "history", "memo", "reports", "standins"})
_HEX64 = re.compile(r"[0-9a-f]{64}")


class Store:
    """Blobs by sha256 below ``root``; nothing half-written is ever visible under its final name.

    Args:
        root: folder; made when something is first written.
        say: where "waiting for another tfenv" goes (stderr by default).
    """

    def __init__(self, root: Path, *, say: Callable[[str], None] | None = None) -> None:
        self.root = root
        self._say = say or (lambda message: print(message, file=sys.stderr))
        self._lock_depth = 0
        self._lock_file: IO[str] | None = None

    @property
    def blobs_dir(self) -> Path:
        """All blobs, one file per sha256."""
        return self.root / "blobs" / "sha256"

    @property
    def tmp_dir(self) -> Path:
        """Unfinished files; on the blobs' own filesystem so that a rename is atomic."""
        return self.root / "tmp"

    @property
    def logs_dir(self) -> Path:
        """Logs of builds."""
        return self.root / "logs"

    @property
    def builds_dir(self) -> Path:
        """Records of what was built, by hash of the inputs."""
        return self.root / "builds"

    @property
    def memo_dir(self) -> Path:
        """Results of earlier commands, by hash of what decides them."""
        return self.root / "memo"

    def path(self, sha256: str) -> Path:
        """Where the blob is, or would be. Raises ``ValueError`` when that is no sha256."""
        return self.blobs_dir / _hex(sha256)

    def has(self, sha256: str, size: int | None = None) -> bool:
        """Is the blob there (and, when given, of this size in bytes)? A cut-off one is absent."""
        try:
            found = self.path(sha256).stat().st_size
        except OSError:
            return False
        return size is None or found == size

    def prove(self, sha256: str) -> Path:
        """The blob, after reading all of it: what a build is made of has the hash that was locked.

        Raises:
            IntegrityError: it was changed on disk; it is removed. FileNotFoundError: it is not there.
        """
        path = self.path(sha256)
        if stat.S_ISREG(path.lstat().st_mode) and hash_file(path) == sha256:
            return path
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
        raise IntegrityError(
            f"a file of the store was changed on disk and has been removed: {path}",
            remedy="type the command again: it is fetched anew",
        )

    def add(self, file: Path, sha256: str, *, name: str = "") -> Path:
        """Move ``file`` (on the store's filesystem) in after checking its hash; return the blob.

        Raises IntegrityError when the hash differs; the file is then left where it is.
        """
        found = hash_file(file)
        if found != _hex(sha256):
            raise IntegrityError(
                f"{name or file.name}: its sha256 is {found}, expected {sha256}",
                remedy="the file was altered on its way or on disk: remove it and fetch it again",
            )
        return self._move(file, sha256)

    def adopt(self, file: Path) -> Path:
        """Move ``file`` (on the store's filesystem), whose hash nobody knows yet, in; return the blob."""
        return self._move(file, hash_file(file))

    def _move(self, file: Path, sha256: str) -> Path:
        target = self.path(sha256)
        with not_ready_when_unwritable(self.root):
            target.parent.mkdir(parents=True, exist_ok=True)
            sync(file)
            # Not executable, not writable by others: bind-mounted into builds as it is.
            file.chmod(0o644)
            file.replace(target)
            sync(target.parent)
        return target

    @contextmanager
    def temp(self, suffix: str = "") -> Iterator[Path]:
        """A new empty file under tmp/ to write to and then ``add``; removed if it is still there."""
        import tempfile

        with not_ready_when_unwritable(self.root):
            self._claim()
            self.tmp_dir.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=f"{os.getpid()}-", suffix=suffix, dir=self.tmp_dir)
        os.close(handle)
        try:
            yield Path(name)
        finally:
            Path(name).unlink(missing_ok=True)

    def read_record(self, inputs: str) -> dict[str, Any] | None:
        """The record of a build by hash of its inputs; None where there is none or it is damaged."""
        try:
            record = json.loads(self._record_path(inputs).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return record if isinstance(record, dict) else None

    def write_record(self, inputs: str, record: Mapping[str, Any]) -> None:
        """Write a build's record (JSON values only) atomically."""
        target = self._record_path(inputs)
        with self.temp(".json") as file, not_ready_when_unwritable(self.root):
            file.write_text(json.dumps(record, sort_keys=True, indent=2) + "\n", "utf-8")
            sync(file)
            target.parent.mkdir(parents=True, exist_ok=True)
            file.replace(target)

    def _record_path(self, inputs: str) -> Path:
        return self.builds_dir / f"{_hex(inputs)}.json"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the store against other tfenv processes; waits, and says for whom. Reentrant."""
        if self._lock_depth == 0:
            self._lock_file = self._acquire()
        self._lock_depth += 1
        try:
            yield
        finally:
            self._lock_depth -= 1
            if self._lock_depth == 0 and self._lock_file is not None:
                self._lock_file.close()
                self._lock_file = None

    def _acquire(self) -> IO[str]:
        with not_ready_when_unwritable(self.root):
            self._claim()
            file = (self.root / "lock").open("a+", encoding="ascii")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            self._say(f"waiting for another tfenv, pid {file.read().strip() or 'unknown'}")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        file.truncate()
        file.write(f"{os.getpid()}\n")
        file.flush()
        return file

    def _claim(self) -> None:
        """Make the folder, and mark it as the store's own: a folder of other files gets no mark.

        Answers and reports may be there already.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        mark = self.root / MARK
        if not mark.exists() and {path.name for path in self.root.iterdir()} <= _EARLY:
            mark.write_text(MARK_TEXT, "ascii")

    def require_own(self) -> None:
        """Refuse to free a folder that holds something else, and was only named as a cache.

        Raises:
            UsageError: it has not the store's mark.
        """
        if not self.root.is_dir() or not any(self.root.iterdir()):
            return
        mark = self.root / MARK
        if not (mark.is_file() and mark.read_bytes() == MARK_TEXT.encode()):
            raise UsageError(
                f"{self.root} was not made by tfenv: nothing in it is removed",
                remedy="point TFENV_CACHE to a folder of its own",
            )


def default_store(env: Mapping[str, str] | None = None) -> Store:
    """The user's store: $TFENV_CACHE, or tfenv in $XDG_CACHE_HOME, or ~/.cache/tfenv."""
    env = os.environ if env is None else env
    if env.get("TFENV_CACHE"):
        return Store(Path(env["TFENV_CACHE"]).expanduser().absolute())
    cache = env.get("XDG_CACHE_HOME") or str(Path(env.get("HOME") or Path.home()) / ".cache")
    return Store(Path(cache) / "tfenv")


def hash_file(path: Path) -> str:
    """The file's sha256 in hex."""
    with path.open("rb") as file:
        return sha256_of(file)


@contextmanager
def not_ready_when_unwritable(where: Path) -> Iterator[None]:
    """Turn a full disk or a folder that cannot be written into NotReadyError."""
    try:
        yield
    except OSError as error:
        raise NotReadyError(
            f"cannot write to the store {where}: {error.strerror or error}",
            remedy="free space (tfenv gc), or point TFENV_CACHE to a folder that you can write",
        ) from error


def _hex(sha256: str) -> str:
    # Also keeps a damaged lock or record from naming a path outside of the store.
    if not _HEX64.fullmatch(sha256):
        raise ValueError(f"not a sha256: {sha256!r}")
    return sha256
