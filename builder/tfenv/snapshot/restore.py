"""Lay out a build from a bundle: its own files, then the store's, then, unless offline, the network's."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tfenv.context import Staged
from tfenv.errors import IntegrityError, TfenvError
from tfenv.files import sha256_of

from . import vanished
from .descriptors import Blob, Manifest, open_plain
from .layout import Layout
from .parts import BUILD
from .writing import not_ready

if TYPE_CHECKING:
    from tfenv.build import Host
    from tfenv.model import Lock

    from .format import Snapshot

_CHUNK = 1 << 20
# A file with this mode may be linked into the build: nothing has to be changed through the link.
_MODE = 0o644


@dataclass(frozen=True, kw_only=True)
class Restored:
    """A build laid out. ``elsewhere``: what the bundle lacked, and where it was found."""

    staged: Staged
    elsewhere: Mapping[str, str]


def wanted(manifest: Manifest) -> tuple[Blob, ...]:
    """The files of a snapshot that its build reads."""
    folders = (*BUILD, "base")
    return tuple(file for file in manifest.files if file.title.split("/", 1)[0] in folders)


def restore(
    layout: Layout,
    manifest: Manifest,
    snapshot: Snapshot,
    lock: Lock | None,
    host: Host,
    root: Path,
    *,
    offline: bool,
) -> Restored:
    """Put all that the build reads below ``root``, each file checked by its hash.

    Args:
        lock: the snapshot's, None where this tfenv cannot read it: then the network cannot be asked.

    Raises:
        Vanished: names every file that could not be had, and what could replace it.
        NotReadyError: the disk is full.
    """
    files = wanted(manifest)
    with not_ready(root):
        for folder in BUILD:
            (root / folder).mkdir(parents=True, exist_ok=True)
        for file in files:
            (root / file.title).parent.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            reasons = pool.map(lambda file: _from_bundle(layout, file, root), files)
            lacking = [(f, why) for f, why in zip(files, reasons, strict=True) if why]
        elsewhere: dict[str, str] = {}
        lacking = _from_store(lacking, host, root, elsewhere, "the store")
        if lacking and lock is not None and not offline:
            _fetch([file for file, _ in lacking], lock, host)
            lacking = _from_store(lacking, host, root, elsewhere, "the network")
        if lacking:
            raise _vanished(lacking, snapshot, lock, host, offline=offline)
        for path in (root, *root.rglob("*")):
            if path.is_dir():
                path.chmod(0o755)
    asked = {"debs", "wheels", "interpreter"} | {file.title.split("/", 1)[0] for file in files}
    named = {name: root / name for name in BUILD if name != "context" and name in asked}
    return Restored(staged=Staged(main=root / "context", named=named), elsewhere=elsewhere)


def _from_bundle(layout: Layout, file: Blob, root: Path) -> str:
    """Place a file of the bundle; return why that cannot be done, or nothing."""
    try:
        place(layout.path(file.digest), file, root / file.title, at=layout.root)
    except IntegrityError as error:
        return error.message
    return ""


def place(source: Path, file: Blob, target: Path, *, at: object) -> None:
    """Link or copy a file to ``target`` if it has its hash.

    Raises:
        IntegrityError: it has not, or is missing.
    """
    with open_plain(source, file, at=at) as stream:
        if f"sha256:{sha256_of(stream)}" != file.digest:
            raise IntegrityError(f"{file.title} in {at} was changed", remedy="restore it from another copy")
        if stat.S_IMODE(os.fstat(stream.fileno()).st_mode) == _MODE and _linked(source, target):
            return
        stream.seek(0)
        with target.open("wb") as copy:
            shutil.copyfileobj(stream, copy, _CHUNK)
    target.chmod(_MODE)


def _linked(source: Path, target: Path) -> bool:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        # Another file system, one without links, or somebody else's file (fs.protected_hardlinks).
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.EOPNOTSUPP):
            raise
        return False
    return True


def _from_store(
    lacking: list[tuple[Blob, str]], host: Host, root: Path, elsewhere: dict[str, str], source: str
) -> list[tuple[Blob, str]]:
    left = []
    for file, why in lacking:
        try:
            place(host.store.path(file.digest[7:]), file, root / file.title, at=host.store.root)
        except IntegrityError:
            left.append((file, why))
        else:
            elsewhere[file.title] = source
    return left


def _fetch(files: list[Blob], lock: Lock, host: Host) -> None:
    """Fetch what the lock names of ``files``; what is gone is named by the caller."""
    from tfenv.build import fetch_inputs
    from tfenv.fetch import MissingInputs

    lacking = {file.digest[7:] for file in files}
    interpreter = lock.interpreter if lock.interpreter and lock.interpreter.sha256 in lacking else None
    debs = tuple(p for p in lock.debian if p.sha256 in lacking)
    wheels = tuple(w for w in lock.wheels if w.sha256 in lacking)
    # One after the other: what is gone of one kind must not keep the others from being looked for.
    none = replace(lock, debian=(), wheels=(), interpreter=None)
    kinds: tuple[Callable[[], Lock], ...] = (
        lambda: replace(none, debian=debs),
        lambda: replace(none, wheels=wheels),
        lambda: replace(none, interpreter=interpreter),
    )
    for part in kinds:
        try:
            fetch_inputs(part(), host)
        except MissingInputs as error:
            host.console.warn(error.message)
        except TfenvError as error:
            host.console.warn(f"{error.message}; {error.remedy}")


def _vanished(
    lacking: list[tuple[Blob, str]], snapshot: Snapshot, lock: Lock | None, host: Host, *, offline: bool
) -> vanished.Vanished:
    urls = {} if offline or lock is None else _urls(lock, host)
    offered = _nothing if offline else _offered(host)
    lost = []
    for file, why in lacking:
        question = vanished.Question(
            blob=file, lock=lock, cell=snapshot.cell, tfenv=snapshot.tfenv, urls=urls, offered=offered
        )
        lost.append(
            vanished.Lost(title=file.title, digest=file.digest, why=why, instead=vanished.instead(question))
        )
    return vanished.Vanished(snapshot.cell, lost, offline=offline)


def _urls(lock: Lock, host: Host) -> dict[str, tuple[str, ...]]:
    from tfenv.mirrors import deb_urls, find_mirrors

    try:
        mirrors = find_mirrors(lock.suite, host.env)
    except TfenvError:
        return {}
    return {p.filename: deb_urls(p, mirrors, lock.debian_locked_at) for p in lock.debian}


def _nothing(_package: str) -> tuple[str, ...]:
    return ()


def _offered(host: Host) -> Callable[[str], tuple[str, ...]]:
    """Asks the user's index for the files of a package; one that does not answer has none."""
    from tfenv.simple_index import SimpleIndex, open_index, project_files

    @cache
    def index() -> SimpleIndex:
        return open_index(host.env)

    def ask(package: str) -> tuple[str, ...]:
        try:
            return tuple(file.filename for file in project_files(index(), package))
        except TfenvError:
            return ()

    return ask
