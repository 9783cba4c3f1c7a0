"""Make a stand-in: resolve, fetch by hash, build with BuildKit into an OCI layout in the store."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfenv.model import Interpreter, Lock, Wheel
from tfenv.times import rfc3339

from .parts import LABEL, Parts, parts_of
from .python import write_python_tar
from .recipe import dockerfile

if TYPE_CHECKING:
    from tfenv.index import IndexSettings
    from tfenv.store import Store
    from tfenv.transfer import Progress

_RECORD = "stand-in.json"
_NEVER = "2999-01-01T00:00:00Z"  # the wheels are pinned: no day is too late for them


@dataclass(frozen=True, kw_only=True)
class StandIn:
    """A stand-in in the store.

    Args:
        image: what it stands in for, e.g. ``nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04``.
        layout: the folder with the OCI image layout; digest: of its one manifest.
        python: version of the base's own Python; python_tar: an archive as the provider's, which links to it.
        wheels: NVIDIA's, by hash, of which it was made.
    """

    image: str
    layout: Path
    digest: str
    python: str
    python_tar: Path
    wheels: tuple[Wheel, ...]

    @property
    def labels(self) -> dict[str, str]:
        """What a cell built on it has to say: BuildKit keeps a base's labels, this is for records."""
        return {LABEL: self.image}

    def contexts(self, base_image: str, base_digest: str = "") -> dict[str, str]:
        """BuildKit's named contexts that put it in the place of the image.

        Args:
            base_image, base_digest: as in the lock, and so in the FROM line.
        """
        name = f"{base_image}@{base_digest}" if base_digest else base_image
        return {name: f"oci-layout://{self.layout}@{self.digest}"}


def make_standin(
    tag: str,
    *,
    store: Store,
    index: IndexSettings,
    env: Mapping[str, str] | None = None,
    progress: Progress = lambda _name, _done, _total: None,
    on_event: Callable[[Mapping[str, Any]], None] = lambda _event: None,
    cuda: str = "",
    cudnn: str | None = None,
    flavour: str = "",
) -> StandIn:
    """The stand-in for ``nvidia/cuda:<tag>``, built unless the store has it.

    Args:
        tag: with or without ``nvidia/cuda:`` and a digest.
        cuda, cudnn, flavour: what the tag is expected to carry, checked if given.
        progress: of the downloads; on_event: gets BuildKit's events.

    Raises:
        UsageError: no stand-in can be made for that tag. NotReadyError: no engine, network or disk.
        BuildError: a step failed; nothing half-made stays.
    """
    from tfenv.context import staged

    environ = os.environ if env is None else env
    parts = parts_of(tag, cuda=cuda, cudnn=cudnn, flavour=flavour)
    lock = _lock(parts, index, environ)
    files = {"Dockerfile": dockerfile(parts), "place.py": _place()}
    key = _key(lock, files)
    home = store.root / "standins" / f"{parts.tag}-{key}"
    with store.lock():
        if (home / _RECORD).is_file():
            return _found(parts, lock, home)
        _fetch(lock, store, index, environ, progress)
        shutil.rmtree(home, ignore_errors=True)
        making = home.with_name(f"{home.name}.part")
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(parents=True)
        try:
            with staged(lock, files, store, f"stand-in-{key}") as stage:
                log = store.logs_dir / f"{time.strftime('%Y%m%dT%H%M%S')}-stand-in-{parts.tag}.log"
                digest = _build(parts, stage, making / "layout", log, environ, on_event)
            (making / "python").mkdir()
            archive = making / "python" / f"cpython-{parts.python}-stand-in.tar.gz"
            write_python_tar(parts.python, archive, epoch=parts.epoch)
            record = {"stands-in-for": parts.image, "digest": digest}
            (making / _RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
            making.rename(home)
        except BaseException:
            shutil.rmtree(making, ignore_errors=True)
            raise
    return _found(parts, lock, home)


def interpreter(made: StandIn, store: Store) -> Interpreter:
    """The Python that goes with a stand-in, put into the store where builds look for a cell's Python."""
    from tfenv.store import hash_file

    sha256 = hash_file(made.python_tar)
    with store.temp() as path:
        shutil.copyfile(made.python_tar, path)
        store.add(path, sha256)
    return Interpreter(
        provider="stand-in",
        version=made.python,
        filename=made.python_tar.name,
        path=f"0/{made.python_tar.name}",
        sha256=sha256,
        released=rfc3339(parts_of(made.image).epoch),
    )


def _found(parts: Parts, lock: Lock, home: Path) -> StandIn:
    return StandIn(
        image=parts.image,
        layout=home / "layout",
        digest=json.loads((home / _RECORD).read_text(encoding="utf-8"))["digest"],
        python=parts.python,
        python_tar=next((home / "python").glob("*.tar.gz")),
        wheels=lock.wheels,
    )


def _lock(parts: Parts, index: IndexSettings, env: Mapping[str, str]) -> Lock:
    """What it is made of by hash, in the form in which cells have it: then all else is theirs, too."""
    from tfenv.debian import glibc_of, resolve_debian
    from tfenv.lock import PLATFORM
    from tfenv.measure import measure
    from tfenv.uv import platform_for, uv_binary, uv_version
    from tfenv.wheels import resolve_wheels

    debian, at = resolve_debian(parts.suite, parts.packages, env)
    uv, platform = uv_binary(env), platform_for(glibc_of(debian))
    wheels, _ = resolve_wheels(
        parts.wheels,
        python=parts.python,
        platform=platform,
        exclude_newer=_NEVER,
        index=index,
        uv=uv,
        env=env,
        measure=lambda url: measure(url, index.requests_session()),
    )
    return Lock(
        cell=f"stand-in-{parts.tag}-py{parts.python}",
        platform=PLATFORM,
        epoch=parts.epoch,
        cuda_epoch=parts.epoch,
        base_epoch=parts.epoch,
        base_image="",
        base_digest="",
        requirements=parts.wheels,
        exclude_newer=_NEVER,
        wheel_platform=platform,
        cuda_from="base",
        require_cuda=parts.environment["NVIDIA_REQUIRE_CUDA"],
        template="",
        uv=uv_version(uv, subprocess.run),
        interpreter=None,
        suite=parts.suite,
        debian_packages=parts.packages,
        debian_locked_at=at,
        debian=tuple(sorted(debian, key=lambda package: package.name)),
        wheels=tuple(wheel for wheel in wheels if wheel.layer == "cuda"),
    )


def _fetch(
    lock: Lock, store: Store, index: IndexSettings, env: Mapping[str, str], progress: Progress
) -> None:
    from tfenv.fetch import fetch

    fetch(lock, store, index, progress, env=env)


def _build(
    parts: Parts,
    stage: Any,
    layout: Path,
    log: Path,
    env: Mapping[str, str],
    on_event: Callable[[Mapping[str, Any]], None],
) -> str:
    from tfenv import buildx
    from tfenv.build import ready_engine

    argv = buildx.build_argv(
        ready_engine(env),
        context=stage.main,
        dockerfile=stage.dockerfile,
        named_contexts=stage.named,
        epoch=parts.epoch,
        output=layout,
        metadata=stage.metadata,
    )
    # As a folder: BuildKit reads named contexts from layouts, not from archives of them.
    argv[argv.index("--output") + 1] += ",tar=false"
    done = buildx.run_build(argv, buildx.client_env(env), log, on_event, metadata=stage.metadata)
    return done.digest


def _place() -> str:
    return Path(__file__).with_name("place.py").read_text(encoding="utf-8")


def _key(lock: Lock, files: Mapping[str, str]) -> str:
    told = [
        [package.sha256 for package in lock.debian],
        [wheel.sha256 for wheel in lock.wheels],
        sorted(files.items()),
    ]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]
