"""Environments in a cell's image: a container of it, with the packages that differ installed on top.

The image itself is not built anew and stays as it is: what differs goes into the container's own layer, which
is gone with the container. The wheels come from the store; neither installation nor command has a network.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tfenv.bisect.command import Ran
from tfenv.bisect.guard import when_killed
from tfenv.bisect.locating import Located, Locator
from tfenv.bisect.model import PinSet
from tfenv.bisect.question import Question
from tfenv.bisect.venv import BuildRefused, Built
from tfenv.container import Bind, Running, Spec, connect
from tfenv.errors import NotReadyError
from tfenv.runline import CACHE_FOLDER, WORKSPACE
from tfenv.transfer import Item

_WHEELS = "/tfenv-wheels"
_LOG = "/tmp/tfenv-bisect.log"
_KEPT = 4 << 20  # bytes of a test's output
_TIME_OUT = (124, 137)  # how coreutils' timeout ends
# Without the user's site-packages and PYTHONPATH, which the image's packages do not need.
_LIST = """
import json
from importlib.metadata import distributions
print(json.dumps([[d.metadata["Name"], d.version, d.requires or []] for d in distributions()]))
"""


@dataclass(frozen=True)
class Installed:
    """A package that is in a container."""

    version: str
    requires: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to do to an image's packages to have a set of pins.

    Args:
        install: the pins that it lacks or has in another version. remove: names of what it has too much.
    """

    install: PinSet
    remove: tuple[str, ...]


def plan(pins: PinSet, there: Mapping[str, Installed]) -> Plan:
    """The difference, by version.

    Raises:
        BuildRefused: NVIDIA's libraries differ, which are no matter of an installation on top.
    """
    install = [p for p in pins.pins if p.name not in there or there[p.name].version != p.version]
    # pip makes the changes; one that nobody asked for does no harm.
    remove = sorted(name for name in there if name not in pins.by_name and name != "pip")
    if cuda := [name for name in (*(p.name for p in install), *remove) if name.startswith("nvidia-")]:
        raise BuildRefused(f"the image's CUDA is another one ({', '.join(cuda[:3])}): bisect in that cell's")
    return Plan(install=PinSet.of(install), remove=tuple(remove))


@dataclass(frozen=True)
class InContainer:
    """A container whose packages are the pins."""

    running: Running
    requires: Mapping[str, tuple[str, ...]]
    user: str

    def run(self, command: Sequence[str], log: Path, timeout: float | None) -> Ran:
        """Run a command as the caller, in the mounted folder."""
        limit = ["timeout", "-k", "5", f"{timeout:g}"] if timeout is not None else []
        shell = f'cd {WORKSPACE} && exec "$@" >{_LOG} 2>&1 </dev/null'
        started = time.monotonic()
        status, _, said = self.running.exec(["sh", "-c", shell, "sh", *limit, *command], user=self.user)
        seconds = time.monotonic() - started
        _, output, _ = self.running.exec(["tail", "-c", str(_KEPT), _LOG], user="0")
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as file:
            file.write(output + said)
        late = timeout is not None and seconds >= timeout and status in _TIME_OUT
        text = (output + said).decode("utf-8", "replace")
        return Ran(status=None if late else status, seconds=seconds, said=text[-(1 << 16) :])


@dataclass(frozen=True, kw_only=True)
class ImageBuilder:
    """Makes containers; see ``venv.Builder``.

    Args:
        folder: of the bisection.
    """

    locator: Locator
    question: Question
    folder: Path
    env: Mapping[str, str]

    @contextmanager
    def build(self, pins: PinSet) -> Iterator[Built]:
        """See ``venv.Builder``."""
        from tfenv.engine import check, probe, run_command

        engine = probe(run_command, self.env)
        check(engine)
        wheels, cache = self.folder / "mount", self.folder / "cache"
        shutil.rmtree(wheels, ignore_errors=True)
        for folder in (wheels, cache):
            folder.mkdir(parents=True, exist_ok=True)
        uid, gid = (0, 0) if engine.rootless else (os.getuid(), os.getgid())
        spec = Spec(
            image=self.question.image,
            entrypoint=("sleep",),
            command=("infinity",),
            user="0",
            read_only=False,
            gpus=self.question.gpus,
            binds=(
                Bind(wheels, _WHEELS),
                Bind(cache, CACHE_FOLDER, read_only=False),  # compiled kernels, for the next one
                Bind(Path(self.question.folder), WORKSPACE, read_only=False),
            ),
        )
        try:
            with ExitStack() as stack:
                running = stack.enter_context(stack.enter_context(connect(self.env)).container(spec))
                stack.enter_context(when_killed([engine.client or "docker", "rm", "--force", running.id]))
                wanted = plan(pins, installed(running))
                names = self._fetch(self.locator.locate(wanted.install), wheels)
                _pip(running, ["uninstall", "--yes", *wanted.remove] if wanted.remove else [])
                _pip(running, ["install", "--no-deps", "--no-index", *names] if names else [])
                requires = {f"{n}=={i.version}": i.requires for n, i in installed(running).items()}
                yield InContainer(running, requires, f"{uid}:{gid}")
        finally:
            shutil.rmtree(wheels, ignore_errors=True)

    def _fetch(self, files: Sequence[Located], folder: Path) -> list[str]:
        """Bring the files into the store and that folder; their names in the container."""
        from tfenv.download import download

        store, session = self.locator.store, self.locator.index.requests_session
        if unknown := [file.filename for file in files if not file.sha256]:
            raise BuildRefused(f"the index tells no hash of {', '.join(unknown)}")
        lost = download([self._item(file) for file in files], store, session)
        if lost:
            raise BuildRefused(f"gone from the index: {', '.join(item.name for item in lost)}")
        for file in files:
            target = folder / file.filename
            try:
                os.link(store.path(file.sha256), target)
            except OSError:  # another file system
                shutil.copyfile(store.path(file.sha256), target)
            target.chmod(0o644)
        return [f"{_WHEELS}/{file.filename}" for file in files]

    def _item(self, file: Located) -> Item:
        from tfenv.measure import length

        size = file.size
        if size is None:
            size = length(file.url, self.locator.index.requests_session(), what=file.name)
        return Item(name=file.filename, sha256=file.sha256, size=size, urls=(file.url,))


def installed(running: Running) -> Mapping[str, Installed]:
    """What a container's Python has, by name.

    Raises:
        NotReadyError: it has no Python that tells.
    """
    from packaging.utils import canonicalize_name

    status, out, said = running.exec(["python", "-I", "-c", _LIST], user="0")
    if status:
        raise NotReadyError(
            f"the image does not tell its packages: {said.decode('utf-8', 'replace').strip()[-300:]}",
            remedy="build it anew: tfenv build CELL; it has to be one of tfenv's",
        )
    rows = json.loads(out)
    return {canonicalize_name(name): Installed(version, tuple(requires)) for name, version, requires in rows}


def _pip(running: Running, arguments: Sequence[str]) -> None:
    if not arguments:
        return
    # The image's constraints hold the very versions that are to be changed.
    command = ["env", "-u", "PIP_CONSTRAINT", "-u", "UV_CONSTRAINT", "python", "-m", "pip"]
    quiet = ["--quiet", "--no-cache-dir", "--disable-pip-version-check", "--root-user-action=ignore"]
    name, *rest = arguments
    options = quiet if name == "install" else [o for o in quiet if o != "--no-cache-dir"]
    status, out, said = running.exec([*command, name, *options, *rest], user="0")
    if status:
        text = (out + said).decode("utf-8", "replace")
        raise BuildRefused(f"pip {name}: {' '.join(text.split())[-300:]}")
