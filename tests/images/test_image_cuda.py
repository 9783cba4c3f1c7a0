"""CUDA: one, complete, and found without any environment variable."""

from __future__ import annotations

import re

import pytest
from inside import ask
from testinfra.host import Host
from tfenv.facts import Library
from tfenv.model import Cell

pytestmark = pytest.mark.image

CUDA = "/opt/tfenv/cuda/"


def test_every_library_opens_by_soname_without_an_environment(host: Host, opened: tuple[Library, ...]):
    sonames = [library.soname for library in opened]
    told = ask(host, "libraries", *sonames, before="env -i")
    # LC_CTYPE: Python sets it itself where there is no locale, see PEP 538.
    assert set(told["environment"]) <= {"LC_CTYPE"}
    assert {s: p for s, p in told["libraries"].items() if not p.startswith(CUDA)} == {}
    assert list(told["libraries"]) == sonames


def test_the_loaders_cache_holds_every_library_once(host: Host, opened: tuple[Library, ...]):
    listed = host.check_output("/sbin/ldconfig -p").splitlines()
    for library in opened:
        paths = [line.split(" => ")[1] for line in listed if line.split()[0] == library.soname]
        assert len(paths) == 1, (library.soname, paths)
        assert paths[0].startswith(CUDA)


def test_no_variable_says_where_libraries_are(host: Host):
    assert host.check_output("env | grep -E '^(LD_|CUDA_HOME|CUDA_PATH|XLA_FLAGS)' || true") == ""


def test_ptxas_is_where_xla_looks_and_of_the_rows_cuda(host: Host, cell: Cell):
    said = host.check_output("env -i /usr/local/cuda/bin/ptxas --version")
    found = re.search(r"release (\d+\.\d+)", said)
    assert found, said
    assert found[1] == cell.cuda_set.cuda


def test_libdevice_is_where_xla_looks(host: Host):
    assert host.file("/usr/local/cuda/nvvm/libdevice/libdevice.10.bc").size > 100_000


def test_there_is_no_second_cuda(root: Host):
    assert root.check_output("ls -d /usr/local/cuda*") == "/usr/local/cuda"
    assert root.file("/usr/local/cuda").linked_to.startswith(CUDA)
    assert root.check_output("ls -d /opt/cuda* 2>/dev/null || true") == ""


def test_no_cuda_library_is_elsewhere(root: Host, opened: tuple[Library, ...]):
    stems = sorted({library.soname.split(".so")[0] for library in opened} | {"libnccl", "libcuda"})
    names = " -o ".join(f"-name '{stem}.so*'" for stem in stems)
    found = root.check_output(f"find / -xdev \\( {names} \\)").splitlines()
    assert len(found) >= len(opened)
    assert [path for path in found if not path.startswith(CUDA)] == []


def test_no_cuda_library_is_there_twice(root: Host):
    found = root.check_output(f"find {CUDA} -type f -name '*.so*'").splitlines()
    names = [path.rsplit("/", 1)[1] for path in found]
    assert sorted(names) == sorted(set(names))


def test_nvidia_brings_no_debian_package(host: Host):
    names = host.check_output("dpkg-query -W -f '${Package}\\n'").splitlines()
    assert [name for name in names if re.match(r"(lib)?(nvidia|cuda|cudnn|nccl|cublas)", name)] == []
