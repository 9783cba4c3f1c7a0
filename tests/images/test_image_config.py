"""The image's configuration: what the row, the lock and the facts say, and nothing more."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import datetime, timezone

import pytest
from client import Docker, Image
from testinfra.host import Host
from tfenv import facts
from tfenv.digest import FILE_NAME, read
from tfenv.lockfile import LOCK_NAME, lock_hash
from tfenv.model import Cell, Lock
from tfenv.render import image_environment
from tfenv.workspace import Workspace

pytestmark = pytest.mark.image


def test_the_nvidia_runtime_is_told_what_the_row_needs(image: Image, cell: Cell):
    told = image.environment
    assert told["NVIDIA_VISIBLE_DEVICES"] == "all"
    assert told["NVIDIA_DRIVER_CAPABILITIES"] == "compute,utility"
    assert told["NVIDIA_REQUIRE_CUDA"] == facts.require_cuda(cell.row.tensorflow, cell.cuda_set.cuda)
    floor = facts.driver_floor(cell.row.tensorflow, cell.cuda_set.cuda)[0]
    assert f"cuda>={floor.cuda}" in told["NVIDIA_REQUIRE_CUDA"]


def test_compiled_kernels_go_where_a_volume_can_be(image: Image):
    told = image.environment
    assert told["CUDA_CACHE_PATH"].startswith(told["HOME"] + "/.cache/")
    assert int(told["CUDA_CACHE_MAXSIZE"]) >= 1 << 30
    assert told["HOME"] in image.config["Volumes"]


def test_the_environments_own_programs_come_first(image: Image):
    first, *others = image.environment["PATH"].split(":")
    assert first == f"{image.environment['VIRTUAL_ENV']}/bin"
    assert {"/usr/bin", "/bin", "/usr/local/bin"} <= set(others)


def test_there_is_no_other_variable(image: Image, lock: Lock):
    shell = {"PATH", "LANG", "VIRTUAL_ENV", "HOME", "USER"}
    assert image.environment.keys() == shell | image_environment(lock).keys()
    assert {name: image.environment[name] for name in image_environment(lock)} == image_environment(lock)


def test_what_is_installed_on_top_is_held_to_the_lock(host: Host, image: Image, lock: Lock):
    """pip and uv read the locked versions as constraints; what only installs may be newer."""
    locked = {f"{w.name}=={w.version}" for w in lock.wheels if w.layer == "python"}
    free = {line for line in locked if line.split("==")[0] in ("pip", "setuptools", "wheel")}
    for variable in ("PIP_CONSTRAINT", "UV_CONSTRAINT"):
        told = host.check_output(f"cat {image.environment[variable]}").splitlines()
        assert set(told) == locked - free


def test_processes_get_what_the_configuration_says(host: Host, image: Image):
    seen = dict(line.split("=", 1) for line in host.check_output("env").splitlines())
    assert {name: seen.get(name) for name in image.environment} == image.environment


def test_labels_tell_the_stack(image: Image, cell: Cell, lock: Lock):
    row = cell.row
    prefix = "dev.tfenv."
    ours = {k.removeprefix(prefix): v for k, v in image.labels.items() if k.startswith(prefix)}
    del ours["lock"], ours["locked"]
    assert ours == {
        "cell": cell.name,
        "tensorflow": row.tensorflow,
        "cuda": cell.cuda_set.cuda,
        "cudnn": cell.cuda_set.cudnn,
        "python": cell.python,
        "cuda-from": lock.cuda_from,
    }


def test_labels_are_those_of_the_oci(image: Image, cell: Cell, lock: Lock):
    prefix = "org.opencontainers.image."
    oci = {k.removeprefix(prefix): v for k, v in image.labels.items() if k.startswith(prefix)}
    created = datetime.fromisoformat(oci.pop("created").replace("Z", "+00:00"))
    assert created == datetime.fromtimestamp(lock.epoch, timezone.utc)
    description = oci.pop("description")
    for word in (cell.row.tensorflow, cell.cuda_set.cuda, cell.cuda_set.cudnn, cell.python):
        assert word in description
    assert oci.pop("title") == cell.name
    assert oci == {"version": cell.row.tensorflow}


def test_the_lock_label_is_the_hash_of_the_committed_lock(
    image: Image, cell: Cell, lock: Lock, workspace: Workspace
):
    told = image.labels["dev.tfenv.lock"]
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", told)
    committed = f"sha256:{lock_hash(lock)}"
    shown = (workspace.folder(cell) / LOCK_NAME).read_bytes()
    assert committed == "sha256:" + hashlib.sha256(shown).hexdigest()
    # Where a mirror has replaced a locked package, `make image` builds from another lock and says so.
    assert (told == committed) is image.locked


def test_the_layers_are_those_recorded_for_the_lock(
    image: Image, cell: Cell, workspace: Workspace, docker: Docker
):
    recorded = read(workspace.folder(cell))
    assert recorded is not None, f"no {FILE_NAME} is committed; type: tfenv build --record {cell.name}"
    told = json.loads(docker("image", "inspect", "--format", "{{json .RootFS.Layers}}", image.id))
    if image.locked:
        assert tuple(told) == recorded.diff_ids


def test_history_and_configuration_hold_no_secret(docker: Docker, image: Image):
    told = docker("history", "--no-trunc", "--format", "{{json .}}", image.id)
    told += docker("image", "inspect", "--format", "{{json .Config}}", image.id)
    assert "COPY" in told  # it is the history
    wrong = (
        r"(?i)[a-z]*_proxy\b|passw|token|secret|index.url|trusted.host|://[^/\s\"]*@|BEGIN [A-Z ]*(KEY|CERT)"
    )
    assert re.search(wrong, told) is None


def test_starting_it_starts_python(image: Image):
    assert (image.config["Cmd"], image.config["Entrypoint"]) == (["python"], None)
    assert image.config["WorkingDir"] == image.environment["HOME"]
