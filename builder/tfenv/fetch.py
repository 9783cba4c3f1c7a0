"""Bring everything that a lock names into the store, from wherever this host gets such things."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tfenv.apt import apt_proxies
from tfenv.download import download
from tfenv.errors import TfenvError, UsageError
from tfenv.index import CA_VARIABLES, IndexSettings
from tfenv.mirrors import Mirrors, deb_urls, find_mirrors
from tfenv.model import DebianPackage, Lock, Wheel
from tfenv.store import Store, hash_file
from tfenv.transfer import Item, Progress
from tfenv.uv import compile_pylock, uv_binary, wheel_urls
from tfenv.wheels import sources

if TYPE_CHECKING:
    import requests

Run = Callable[..., "subprocess.CompletedProcess[str]"]

_SYSTEM_CA = "/etc/ssl/certs/ca-certificates.crt"


class MissingInputs(TfenvError):  # noqa: N818  (the name of the situation, not of a fault)
    """Locked files that no source has any more.

    Args:
        cell: whose lock it is.
        debian, wheels: file names; where only Debian's are missing, ``up`` can go on.
        interpreter: file name of the Python.
    """

    def __init__(
        self, cell: str, *, debian: Sequence[str] = (), wheels: Sequence[str] = (), interpreter: str = ""
    ) -> None:
        self.debian, self.wheels = tuple(debian), tuple(wheels)
        lines = [f"{cell}: locked inputs are no longer to be had:"]
        lines += [f"  {name} (replaced on the mirror)" for name in self.debian]
        lines += [f"  {name} (gone from the package index)" for name in self.wheels]
        if interpreter:
            lines.append(f"  {interpreter} (gone from its provider)")
            remedy = f"tfenv lock {cell} --upgrade python"
        elif self.wheels:
            remedy = f"put the wheels into a folder named by PIP_FIND_LINKS, or: tfenv lock {cell}"
            remedy += " --upgrade wheels"
        else:
            remedy = f"tfenv lock {cell} --upgrade debian, or tfenv up {cell}, which goes on with"
            remedy += " today's versions (not the locked digest)"
        super().__init__("\n".join(lines), remedy=remedy)


def lacks_interpreter(lock: Lock, store: Store) -> bool:
    """Whether the lock's Python is still to be fetched."""
    return lock.interpreter is not None and not store.path(lock.interpreter.sha256).is_file()


def missing(lock: Lock, store: Store) -> tuple[tuple[DebianPackage, ...], tuple[Wheel, ...]]:
    """What packages of the lock the store lacks. Cheap: looks at names and sizes."""
    return (
        tuple(p for p in lock.debian if not store.has(p.sha256, p.size)),
        tuple(w for w in lock.wheels if not store.has(w.sha256, w.size)),
    )


def fetch(
    lock: Lock,
    store: Store,
    index: IndexSettings,
    progress: Progress = lambda _name, _done, _total: None,
    *,
    env: Mapping[str, str] | None = None,
    run: Run = subprocess.run,
    mirrors: Mirrors | None = None,
) -> None:
    """Fetch what the store lacks, checked by hash; nothing to do costs no network.

    Raises MissingInputs with the whole list where files are gone, NotReadyError where the
    network or a server does not answer, IntegrityError for wrong bytes.
    """
    env = os.environ if env is None else env
    with store.lock():
        debs, wheels = missing(lock, store)
        _fetch_interpreter(lock, store, env, progress)
        items, gone = _wheel_items(lock, wheels, index, env, run)
        lost: tuple[Item, ...] = ()
        if debs:
            mirrors = mirrors or find_mirrors(lock.suite, env)
            lost = download(
                _deb_items(debs, mirrors, lock.debian_locked_at),
                store,
                _debian_session(env, run),
                progress,
            )
        if lost or gone:  # before gigabytes of wheels are fetched in vain
            raise MissingInputs(lock.cell, debian=[i.name for i in lost], wheels=gone)
        lost = download(items, store, index.requests_session, progress)
        if lost:
            raise MissingInputs(lock.cell, wheels=[item.name for item in lost])


def _fetch_interpreter(lock: Lock, store: Store, env: Mapping[str, str], progress: Progress) -> None:
    """The provider tells hashes and no sizes, so the server is asked for those."""
    if lock.interpreter is None or not lacks_interpreter(lock, store):
        return
    from tfenv.interpreters import urls
    from tfenv.measure import length

    session = _session(_authorities(env), None)
    item = Item(
        name=lock.interpreter.filename,
        sha256=lock.interpreter.sha256,
        size=length(urls(lock.interpreter, env)[0], session(), what=lock.interpreter.provider),
        urls=urls(lock.interpreter, env),
    )
    if download([item], store, session, progress):
        raise MissingInputs(lock.cell, interpreter=item.name)


def _deb_items(debs: Iterable[DebianPackage], mirrors: Mirrors, locked_at: str) -> list[Item]:
    return [
        Item(name=p.filename, sha256=p.sha256, size=p.size, urls=deb_urls(p, mirrors, locked_at))
        for p in debs
    ]


def _wheel_items(
    lock: Lock, wheels: Sequence[Wheel], index: IndexSettings, env: Mapping[str, str], run: Run
) -> tuple[list[Item], list[str]]:
    """Where each wheel lies today, and the file names of those that the index has no more."""
    urls = {w.sha256: find_local(w, index.local_folders()) for w in wheels}
    asked = [w for w in wheels if not urls[w.sha256]]
    urls.update(_ask(lock, asked, index, env, run))
    items = [
        Item(name=w.filename, sha256=w.sha256, size=w.size, urls=urls[w.sha256])
        for w in wheels
        if urls.get(w.sha256)
    ]
    found = {item.sha256 for item in items}
    return items, sorted(w.filename for w in wheels if w.sha256 not in found)


def find_local(wheel: Wheel, folders: Iterable[Path]) -> tuple[str, ...]:
    """The file:// URL of that very wheel in a find-links folder, if it is there."""
    for folder in folders:
        file = folder / wheel.filename
        try:
            if file.stat().st_size == wheel.size and hash_file(file) == wheel.sha256:
                return (file.absolute().as_uri(),)
        except OSError:
            continue
    return ()


def _ask(
    lock: Lock, wheels: Sequence[Wheel], index: IndexSettings, env: Mapping[str, str], run: Run
) -> dict[str, tuple[str, ...]]:
    """Let uv look up the locked versions in the user's own index; URLs by sha256."""

    def ask(some: Sequence[Wheel], settings: IndexSettings) -> dict[str, tuple[str, ...]]:
        document = compile_pylock(
            [f"{w.name}=={w.version}" for w in some],
            python=python_of(lock),
            platform=lock.wheel_platform,
            options=("--no-deps", *sources(w.name for w in some if w.layer == "source")),
            index=settings,
            uv=uv_binary(env),
            env=env,
            run=run,
        )
        return wheel_urls(document)

    found: dict[str, tuple[str, ...]] = {}
    for settings in (index, *index.alone()):
        # One name may be locked in two layers with two versions, so each layer is asked for.
        for tool in (False, True):
            left = [w for w in wheels if w.sha256 not in found and (w.layer == "tool") == tool]
            if not left:
                continue
            try:
                found.update(ask(left, settings))
            except UsageError:
                # uv stops at the first version that does not exist: ask for each.
                for wheel in left:
                    with contextlib.suppress(UsageError):
                        found.update(ask([wheel], settings))
    return found


def python_of(lock: Lock) -> str:
    """The Python in the cell's name, e.g. ``3.11``; an environment's says it itself."""
    from tfenv.team.model import Layer

    if isinstance(lock, Layer):
        return lock.python
    for part in lock.cell.split("-"):
        if part.startswith("py3."):
            return part[2:]
    raise TfenvError(
        f"the lock's cell name {lock.cell} holds no Python version",
        remedy="restore the lock: git checkout images/",
    )


def _debian_session(env: Mapping[str, str], run: Run) -> Callable[[], requests.Session]:
    # As apt does: the system's authorities, unless the environment names others.
    system = _SYSTEM_CA if Path(_SYSTEM_CA).exists() else None
    return _session(_authorities(env) or system, apt_proxies(env, run))


def _authorities(env: Mapping[str, str]) -> str | None:
    return next((env[v] for v in CA_VARIABLES if env.get(v)), None)


def _session(verify: str | None, proxies: Mapping[str, str] | None) -> Callable[[], requests.Session]:
    """Makes sessions; without ``verify`` and ``proxies`` the environment's own hold."""

    def session() -> requests.Session:
        from tfenv.session import IndexSession

        return IndexSession(verify=verify, proxies=proxies)

    return session
