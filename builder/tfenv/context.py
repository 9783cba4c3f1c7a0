"""Stage a build: everything that BuildKit reads, hard-linked from the store into one folder."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfenv import lockfile, resources, rootfs
from tfenv.buildx import BuildError
from tfenv.errors import IntegrityError, NotReadyError

if TYPE_CHECKING:
    from tfenv.model import Lock
    from tfenv.store import Store


@dataclass(frozen=True, kw_only=True)
class Staged:
    """The folders of a build: the ``main`` context and the named ones."""

    main: Path
    named: Mapping[str, Path]

    @property
    def dockerfile(self) -> Path:
        """The rendered Dockerfile in the main context."""
        return self.main / "Dockerfile"

    @property
    def archive(self) -> Path:
        """Where the build's OCI archive goes: beside the contexts."""
        return self.main.parent / "image.oci.tar"

    @property
    def metadata(self) -> Path:
        """Where buildx writes the digest."""
        return self.main.parent / "metadata.json"


def stage(lock: Lock, files: Mapping[str, str], store: Store, root: Path) -> Staged:
    """Lay out a build under ``root``, which must be empty and on the store's filesystem.

    Args:
        files: the rendered files, by name.

    Raises:
        NotReadyError: an input is not in the store, or the disk is full.
    """
    main, debs, wheels, interpreter = (root / n for n in ("context", "debs", "wheels", "interpreter"))
    try:
        shutil.copytree(
            resources.templates_dir() / "tools",
            main / "tools",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        for name, text in files.items():
            (main / name).write_text(text, encoding="utf-8")
        _prove(lock, store)
        for folder in (debs, wheels, interpreter):
            folder.mkdir()
        if lock.interpreter is not None:
            _link(store, lock.interpreter.sha256, interpreter, lock.interpreter.filename)
        for package in lock.debian:
            _link(
                store, package.sha256, debs / ("essential" if package.essential else "rest"), package.filename
            )
        for wheel in lock.wheels:
            _link(store, wheel.sha256, wheels / wheel.layer, wheel.filename)
        for layer in ("cuda", "python", "source"):
            (wheels / layer).mkdir(exist_ok=True, parents=True)
            lines = lockfile.requirement_lines(lock.wheels, layer)
            text = "".join(f"{line}\n" for line in lines)
            (wheels / layer / "requirements.txt").write_text(text, encoding="utf-8")
        if lock.debian:
            essential = sorted((debs / "essential").glob("*.deb"))
            rootfs.write_essential_tar(essential, main / "essential.tar", epoch=lock.base_epoch)
        _settle(root)
    except FileNotFoundError as error:
        raise IntegrityError(
            f"an input of {lock.cell} is not in the store: {error.filename}",
            remedy="type the command again: it is fetched anew",
        ) from error
    except OSError as error:
        raise NotReadyError(
            f"cannot stage the build under {root}: {error.strerror or error}",
            remedy="free space: tfenv gc",
        ) from error
    return Staged(main=main, named={"debs": debs, "wheels": wheels, "interpreter": interpreter})


def _prove(lock: Lock, store: Store) -> None:
    """Read every input once and compare its hash: nothing later looks at the .debs and at uv."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        hashes = {package.sha256 for package in lock.debian} | {wheel.sha256 for wheel in lock.wheels}
        if lock.interpreter is not None:
            hashes.add(lock.interpreter.sha256)
        list(pool.map(store.prove, sorted(hashes)))


def _link(store: Store, sha256: str, folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        os.link(store.path(sha256), folder / name)
    except OSError as error:
        if error.errno != errno.EXDEV:  # another filesystem
            raise
        shutil.copyfile(store.path(sha256), folder / name)


def _settle(root: Path) -> None:
    """The same modes whatever the umask: BuildKit's cache keys and COPY see them."""
    for path in root.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


@contextmanager
def staged(lock: Lock, files: Mapping[str, str], store: Store, name: str) -> Iterator[Staged]:
    """``stage`` in a ``place`` of that name."""
    with place(store, name) as root:
        yield stage(lock, files, store, root)


@contextmanager
def place(store: Store, name: str) -> Iterator[Path]:
    """An empty folder for a build, ``stage/name`` in the store, removed afterwards.

    A failed build's stays, so that the command it names can be repeated; `tfenv gc` removes it.
    """
    root = store.root / "stage" / name
    shutil.rmtree(root, ignore_errors=True)
    try:
        root.mkdir(parents=True)
        yield root
    except BuildError:
        raise
    except BaseException:
        shutil.rmtree(root, ignore_errors=True)
        raise
    shutil.rmtree(root, ignore_errors=True)
