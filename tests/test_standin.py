"""Stand-ins for nvidia/cuda images: what they are made of, where it goes, and what they say of themselves."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from tfenv.errors import UsageError
from tfenv.resources import facts_dir
from tfenv.standin import LABEL, StandIn, interpreter, parts_of, write_python_tar
from tfenv.standin import make as making
from tfenv.standin.place import full_name, lay_out, place
from tfenv.standin.recipe import dockerfile
from tfenv.store import Store

RUNTIME = "12.2.2-cudnn8-runtime-ubuntu22.04"
BASE = "12.3.2-base-ubuntu22.04"


# --- what it is made of ------------------------------------------------------------------------------


def test_a_runtime_image_has_all_libraries_and_the_cudnn_of_its_tag() -> None:
    parts = parts_of(RUNTIME)
    assert (parts.cuda, parts.cudnn, parts.flavour) == ("12.2.2", "8.9.6.50", "runtime")
    assert "nvidia-cudnn-cu12==8.9.6.50" in parts.wheels
    assert "nvidia-cublas-cu12==12.2.5.6" in parts.wheels
    assert (parts.suite, parts.python, parts.folder) == ("bookworm", "3.11", "/usr/local/cuda-12.2")
    assert not [wheel for wheel in parts.wheels if "nvcc" in wheel or "cupti" in wheel]


def test_a_base_image_has_the_runtime_alone() -> None:
    parts = parts_of(BASE)
    assert parts.wheels == ("nvidia-cuda-runtime-cu12==12.3.101",)
    assert parts.cudnn is None


@pytest.mark.parametrize("text", [f"nvidia/cuda:{RUNTIME}", f"nvidia/cuda:{RUNTIME}@sha256:{'0' * 64}"])
def test_an_image_is_named_in_any_form(text: str) -> None:
    assert parts_of(text) == parts_of(RUNTIME)
    assert parts_of(text).image == f"nvidia/cuda:{RUNTIME}"


@pytest.mark.parametrize(
    "tag",
    [
        "11.2.2-cudnn8-runtime-ubuntu20.04",  # no wheels of CUDA 11.2
        "12.3.2-cudnn8-runtime-ubuntu22.04",  # no such image
        "12.2.2-cudnn8-devel-ubuntu22.04",
        "12.2.2-base-ubi8",
        "12.2.2-base-ubuntu16.04",
        "latest",
    ],
)
def test_other_tags_are_refused(tag: str) -> None:
    with pytest.raises(UsageError, match="no stand-in can be made") as caught:
        parts_of(tag)
    assert "where nvidia/cuda" in caught.value.remedy


def test_what_the_tag_is_taken_for_is_checked() -> None:
    assert parts_of(RUNTIME, cuda="12.2", cudnn="8.9", flavour="runtime") == parts_of(RUNTIME)
    for wrong in ({"cuda": "12.3"}, {"cudnn": "8.6"}, {"flavour": "base"}, {"cuda": "12.20"}):
        with pytest.raises(UsageError, match="has"):
            parts_of(RUNTIME, **wrong)
    with pytest.raises(UsageError, match=r"cuDNN none, not 8\.9"):
        parts_of(BASE, cudnn="8.9")


def test_every_cuda_of_the_facts_makes_a_stand_in() -> None:
    facts = json.loads((facts_dir() / "standins.json").read_text())
    assert len(facts["source"]) > 50
    for cuda in facts["cuda"]:
        parts = parts_of(f"{cuda}-base-ubuntu22.04")
        assert all("==" in wheel for wheel in (*parts.wheels, *facts["cuda"][cuda]["runtime"]))


# --- what it says of itself ------------------------------------------------------------------------


def test_labels_and_environment_are_in_the_dockerfile() -> None:
    text = dockerfile(parts_of(RUNTIME))
    assert f'LABEL {LABEL}="nvidia/cuda:{RUNTIME}"' in text
    assert "not by NVIDIA" in text
    assert 'ENV CUDA_VERSION="12.2.2"' in text
    assert 'ENV LD_LIBRARY_PATH="/usr/local/nvidia/lib:/usr/local/nvidia/lib64"' in text
    assert "link to this base's own" in text


def test_every_step_is_without_network() -> None:
    text = dockerfile(parts_of(RUNTIME))
    assert text.count("RUN ") == text.count("RUN --network=none")


# --- where it goes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stem", "version", "part", "name"),
    [
        ("libcudart.so", "11.8.89", "cuda_runtime", "libcudart.so.11.8.89"),
        ("libcublas.so", "12.2.5.6", "cublas", "libcublas.so.12.2.5.6"),
        ("libcudnn_ops_infer.so", "8.9.6.50", "cudnn", "libcudnn_ops_infer.so.8.9.6"),
        ("libnccl.so", "2.19.3", "nccl", "libnccl.so.2.19.3"),
    ],
)
def test_files_have_the_names_of_nvidias_packages(stem: str, version: str, part: str, name: str) -> None:
    assert full_name(stem, version, part) == name


def wheel(folder: Path, name: str, *members: str) -> Path:
    path = folder / name
    with zipfile.ZipFile(path, "w") as archive:
        for member in members:
            archive.writestr(member, member)
    return path


def test_a_wheels_libraries_are_placed_with_links(tmp_path: Path) -> None:
    toolkit, system = tmp_path / "toolkit", tmp_path / "system"
    toolkit.mkdir()
    system.mkdir()
    cudart = wheel(
        tmp_path,
        "nvidia_cuda_runtime_cu11-11.8.89-py3-none-manylinux1_x86_64.whl",
        "nvidia/cuda_runtime/lib/libcudart.so.11.0",
        "nvidia/cuda_runtime/lib/libOpenCL.so.1",
        "nvidia/cuda_runtime/include/cuda.h",
    )
    place(cudart, toolkit, system)
    assert sorted(p.name for p in toolkit.iterdir()) == ["libcudart.so.11.0", "libcudart.so.11.8.89"]
    assert (toolkit / "libcudart.so.11.0").readlink() == Path("libcudart.so.11.8.89")
    cudnn = wheel(
        tmp_path,
        "nvidia_cudnn_cu12-8.9.6.50-py3-none-manylinux1_x86_64.whl",
        "nvidia/cudnn/lib/libcudnn.so.8",
    )
    assert [p.name for p in place(cudnn, toolkit, system)] == ["libcudnn.so.8.9.6", "libcudnn.so.8"]
    assert {p.parent for p in system.iterdir()} == {system}


def test_a_wheel_without_libraries_is_an_error(tmp_path: Path) -> None:
    empty = wheel(tmp_path, "nvidia_cuda_nvcc_cu12-12.2.140-py3-none-any.whl", "nvidia/cuda_nvcc/bin/ptxas")
    with pytest.raises(SystemExit, match="holds no library"):
        place(empty, tmp_path, tmp_path)


def test_the_folders_are_those_of_nvidias_image(tmp_path: Path) -> None:
    for folder in ("etc/alternatives", "etc/ld.so.conf.d", "usr/local"):
        (tmp_path / folder).mkdir(parents=True)
    toolkit, made = lay_out(tmp_path / "usr/local/cuda-12.2", tmp_path)
    assert toolkit == tmp_path / "usr/local/cuda-12.2/targets/x86_64-linux/lib"
    assert (tmp_path / "usr/local/cuda-12.2/lib64").resolve() == toolkit
    assert (tmp_path / "usr/local/cuda").readlink() == Path("/etc/alternatives/cuda")
    assert (tmp_path / "etc/alternatives/cuda").readlink() == Path("/usr/local/cuda-12.2")
    assert (tmp_path / "etc/ld.so.conf.d/000_cuda.conf").read_text().startswith("/usr/local/cuda/")
    assert tmp_path / "usr/local/cuda-12" in made


# --- the Python that goes with it ------------------------------------------------------------------


def test_the_python_is_a_link_in_the_providers_layout(tmp_path: Path) -> None:
    one, two = tmp_path / "one.tar.gz", tmp_path / "two.tar.gz"
    write_python_tar("3.11", one, epoch=5)
    write_python_tar("3.11", two, epoch=5)
    assert one.read_bytes() == two.read_bytes()
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(one.read_bytes()))) as archive:
        link = archive.getmember("python/bin/python3.11")
        assert (link.issym(), link.linkname, link.mtime) == (True, "/usr/bin/python3.11", 5)
        assert archive.getmember("python/lib/python3.11").isdir()


# --- how it is used ----------------------------------------------------------------------------------


MADE = StandIn(
    image=f"nvidia/cuda:{RUNTIME}",
    layout=Path("/store/layout"),
    digest="sha256:1",
    python="3.11",
    python_tar=Path("/store/python/x.tar.gz"),
    wheels=(),
)


def test_the_context_replaces_the_image_of_the_from_line() -> None:
    layout = "oci-layout:///store/layout@sha256:1"
    assert MADE.contexts("nvidia/cuda:x", "sha256:2") == {"nvidia/cuda:x@sha256:2": layout}
    assert MADE.contexts("nvidia/cuda:x") == {"nvidia/cuda:x": layout}


def test_its_python_is_put_where_builds_look_for_a_cells(tmp_path: Path) -> None:
    archive = tmp_path / "cpython-3.11-stand-in.tar.gz"
    write_python_tar("3.11", archive, epoch=5)
    store = Store(tmp_path / "store")
    found = interpreter(replace(MADE, python_tar=archive), store)
    assert (found.provider, found.version, found.filename) == ("stand-in", "3.11", archive.name)
    assert found.released == "2023-06-10T00:00:00Z"
    assert store.path(found.sha256).read_bytes() == archive.read_bytes()
    assert archive.is_file()


# --- the making ----------------------------------------------------------------------------------------


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Everything that needs network or engine, replaced; the list of what was done."""
    from tfenv import context

    done: list[str] = []
    lock = replace(_empty_lock(), cell=f"stand-in-{RUNTIME}-py3.11")
    monkeypatch.setattr(making, "_lock", lambda *_: lock)
    monkeypatch.setattr(making, "_fetch", lambda *_: done.append("fetch"))
    monkeypatch.setattr(context.rootfs, "write_essential_tar", lambda *_, **__: None)

    def build(parts: object, stage: object, layout: Path, *_: object) -> str:
        done.append("build")
        layout.mkdir()
        return "sha256:made"

    monkeypatch.setattr(making, "_build", build)
    return done


def _empty_lock():
    from tfenv.model import Lock

    return Lock(
        cell="x",
        platform="linux/amd64",
        epoch=1,
        cuda_epoch=1,
        base_epoch=1,
        base_image="",
        base_digest="",
        requirements=(),
        exclude_newer="2999-01-01T00:00:00Z",
        wheel_platform="x86_64-manylinux_2_36",
        cuda_from="base",
        require_cuda="",
        template="",
        uv="1",
        interpreter=None,
        suite="bookworm",
        debian_packages=(),
        debian_locked_at="",
        debian=(),
        wheels=(),
    )


def make(tmp_path: Path) -> StandIn:
    return making.make_standin(RUNTIME, store=Store(tmp_path / "store"), index=None, env={})  # type: ignore[arg-type]


def test_one_that_was_made_is_not_made_again(tmp_path: Path, steps: list[str]) -> None:
    first = make(tmp_path)
    assert steps == ["fetch", "build"]
    assert first == make(tmp_path)
    assert steps == ["fetch", "build"]
    assert first.digest == "sha256:made"
    assert first.layout.is_dir() and first.python_tar.is_file()
    assert first.labels == {LABEL: f"nvidia/cuda:{RUNTIME}"}


def test_a_failure_leaves_nothing_behind(
    tmp_path: Path, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise UsageError("no", remedy="r")

    monkeypatch.setattr(making, "_build", broken)
    with pytest.raises(UsageError):
        make(tmp_path)
    assert list((tmp_path / "store/standins").iterdir()) == []


def test_the_layout_script_runs_alone() -> None:
    """It is staged into the build by itself, so it must import nothing of tfenv."""
    script = Path(making.__file__).with_name("place.py")
    load = f"import runpy; runpy.run_path({str(script)!r})"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", load], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
