"""One container of the built image for all tests here; without the image they fail, none is skipped."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from client import Docker, Image
from testinfra.host import Host
from tfenv import engine, libraries
from tfenv.container import Containers, connect
from tfenv.errors import TfenvError
from tfenv.facts import Library, compiled
from tfenv.model import Cell, Lock
from tfenv.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def workspace() -> Workspace:
    return Workspace(ROOT, {})


@pytest.fixture(scope="session")
def cell(workspace: Workspace) -> Cell:
    """The cell that `make image` builds: $CELL, else the Makefile's."""
    default = re.search(r"^CELL \?= (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert default, "the Makefile names no CELL"
    (found,) = workspace.cells((os.environ.get("CELL") or default[1],))
    return found


@pytest.fixture(scope="session")
def lock(workspace: Workspace, cell: Cell) -> Lock:
    return workspace.lock(cell)


@pytest.fixture(scope="session")
def docker() -> Docker:
    found = engine.probe()
    try:
        engine.check(found)
    except TfenvError as error:
        pytest.fail(f"{error.message}\n{error.remedy}\nor type: make image", pytrace=False)
    assert found.client
    return Docker(found.client)


@pytest.fixture(scope="session")
def containers(docker: Docker) -> Iterator[Containers]:
    with connect(timeout=300) as found:
        yield found


@pytest.fixture(scope="session")
def image(workspace: Workspace, cell: Cell, containers: Containers) -> Image:
    name = workspace.tags(cell)[0]
    told = containers.image(name)
    if told is None:
        pytest.fail(f"there is no image {name} here; type: make image", pytrace=False)
    return Image(name, told["Id"], told["Config"])


@pytest.fixture(scope="session")
def container(docker: Docker, image: Image) -> Iterator[str]:
    """A container with a read-only root: what one test does, no other sees."""
    options = ("--detach", "--network", "none", "--read-only")
    name = docker("run", *options, image.id, "sleep", "infinity").strip()
    yield name
    docker("rm", "--force", "--volumes", name)


@pytest.fixture(scope="session")
def host(docker: Docker, container: str) -> Host:
    """The image as its default user sees it."""
    return docker.host(container)


@pytest.fixture(scope="session")
def root(docker: Docker, container: str) -> Host:
    """The image as root sees it: all files."""
    return docker.host(container, user="0")


@pytest.fixture(scope="session")
def opened(cell: Cell) -> tuple[Library, ...]:
    """The libraries that TensorFlow opens, but for those of wheels left out with a reason."""
    cuda_set = cell.cuda_set
    without = {rule.what for rule in cuda_set.without}
    known = libraries.opened(compiled(cell.row.tensorflow), cuda=cuda_set.cuda, cudnn=cuda_set.cudnn)
    return tuple(library for library in known if library.wheel not in without)


@pytest.fixture(scope="session")
def site_packages(cell: Cell) -> str:
    return f"/opt/tfenv/venv/lib/python{cell.python}/site-packages"


@pytest.fixture
def seeds(tmp_path: Path) -> Path:
    """The seeds where everybody may read them."""
    for folder in (*tmp_path.parents[:2], tmp_path):
        folder.chmod(0o755)
    for path in (ROOT / "tests/gpu/seeds").glob("*.py"):
        (tmp_path / path.name).write_text(path.read_text())
        (tmp_path / path.name).chmod(0o644)
    return tmp_path
