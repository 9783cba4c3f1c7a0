"""Any user can work in the image, also with a read-only root and without a network."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

import pytest
from client import Docker, Image
from inside import ask, source
from testinfra.host import Host
from tfenv.model import Cell

pytestmark = pytest.mark.image

USERS = ("", "12345", "0", "65534")
HARD = ("--rm", "--read-only", "--network", "none")
PRINT_VERSION = "import tensorflow as tf; print(tf.__version__)"


def as_user(user: str) -> tuple[str, ...]:
    return ("--user", user) if user else ()


@pytest.fixture
def volume(docker: Docker) -> Iterator[str]:
    name = f"tfenv-test-{uuid.uuid4().hex[:12]}"
    yield name
    docker("volume", "rm", "--force", name)


def test_the_default_user_is_not_root(host: Host, image: Image):
    assert image.config["User"] == "1000:1000"
    assert host.check_output("id -u") == "1000"
    assert host.check_output("id -un") == "tfenv"


def test_the_home_folder_is_the_users_and_the_start(host: Host, image: Image):
    assert host.check_output("getent passwd 1000").split(":")[5] == image.environment["HOME"]
    assert host.check_output("pwd") == image.environment["HOME"]


def test_no_account_has_a_password(root: Host):
    lines = root.file("/etc/shadow").content_string.splitlines()
    assert lines
    assert [line for line in lines if line.split(":")[1] not in ("*", "!", "!!", "!*")] == []


@pytest.mark.parametrize("user", USERS)
def test_any_user_imports_tensorflow(docker: Docker, image: Image, cell: Cell, user: str):
    said = docker("run", *HARD, *as_user(user), image.id, "python", "-c", PRINT_VERSION)
    assert said == f"{cell.row.tensorflow}\n"


@pytest.mark.parametrize("user", USERS)
def test_any_user_can_write_where_programs_write(docker: Docker, image: Image, user: str):
    said = docker("run", *HARD, *as_user(user), image.id, "python", "-c", source("writable"))
    told = json.loads(said)
    root = told.pop("root")
    assert told == {"uid": int(user or 1000), "home": True, "temporary": True, "cuda_cache": True}
    assert root is not True, "the environment itself could be changed under a read-only root"


def test_only_root_can_change_the_environment(docker: Docker, image: Image):
    """Also where the root is writable: packages do not change by accident."""
    said = docker("run", "--rm", "--network", "none", image.id, "python", "-c", source("writable"))
    assert "Permission denied" in json.loads(said)["root"]


def test_a_named_volume_keeps_compiled_kernels_for_any_user(docker: Docker, image: Image, volume: str):
    mounted = ("--volume", f"{volume}:/home/tfenv/.cache")
    for user in ("12345", "1000", "0"):
        said = docker("run", *HARD, *mounted, *as_user(user), image.id, "python", "-c", source("writable"))
        told = json.loads(said)
        assert (told["cuda_cache"], told["home"]) == (True, True)
    keep = ("sh", "-c", "echo kernel > $CUDA_CACHE_PATH/kept")
    docker("run", *HARD, *mounted, *as_user("12345"), image.id, *keep)
    again = docker("run", *HARD, *mounted, image.id, "sh", "-c", "cat $CUDA_CACHE_PATH/kept")
    assert again == "kernel\n"


def test_the_python_is_the_rows(host: Host, cell: Cell):
    asked = "import sys; print('%d.%d' % sys.version_info[:2], sys.prefix)"
    assert host.check_output("python -c %s", asked).split() == [cell.python, "/opt/tfenv/venv"]
    assert host.check_output("command -v python") == "/opt/tfenv/venv/bin/python"


def test_a_login_shell_finds_the_libraries_too(host: Host, image: Image):
    """ssh and `su -` start with another environment: what needs no variable works there."""
    told = ask(host, "writable", before=f"env -i HOME={image.environment['HOME']} CUDA_CACHE_PATH=/tmp/x")
    assert told["home"] is True
