"""What BuildKit is given: the layout, its modes, and which stages stay."""

from __future__ import annotations

import errno
import os
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import matrices
import pytest
import small
from small import Place
from tfenv import context, resources
from tfenv.buildx import BuildError
from tfenv.errors import IntegrityError, NotReadyError
from tfenv.model import DebianPackage, Wheel

FILES = {"Dockerfile": "FROM scratch\n# größer\n", "requirements.lock": "x\n"}


@pytest.fixture
def umask_077() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


def laid(here: Place, root: Path) -> dict[str, Path]:
    """Stage the lock; every file by its path below ``root``."""
    context.stage(here.lock, FILES, here.store, root)
    return {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}


def test_the_layout(here: Place) -> None:
    root = here.store.root / "stage" / "x"
    files = laid(here, root)
    tools = {f"context/tools/{path.name}" for path in (resources.templates_dir() / "tools").glob("*.*")}
    assert files.keys() == tools | {
        "context/Dockerfile",
        "context/requirements.lock",
        "context/essential.tar",
        "debs/essential/base-files_1.0_amd64.deb",
        "debs/rest/apt_1.0_amd64.deb",
        "debs/rest/libc6_2.36_amd64.deb",
        "debs/rest/python3.11_1.0_amd64.deb",
        "wheels/cuda/nvidia_cublas_cu12-12.2.5.6-py3-none-any.whl",
        "wheels/cuda/requirements.txt",
        "wheels/python/pip-24.0-py3-none-any.whl",
        "wheels/python/requirements.txt",
        "wheels/python/tensorflow-2.15.1-py3-none-any.whl",
        "wheels/source/requirements.txt",
        "wheels/tool/uv-0.9.9-py3-none-any.whl",
    }
    assert files["context/Dockerfile"].read_bytes() == FILES["Dockerfile"].encode()


def test_the_layout_of_an_image_with_a_python_of_the_provider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = small.place(tmp_path, monkeypatch, matrices.with_ubuntu(only=True))
    files = laid(here, here.store.root / "stage" / "x")
    python = here.lock.interpreter
    assert python is not None
    assert files[f"interpreter/{python.filename}"].samefile(here.store.path(python.sha256))
    assert not any(name.startswith("debs/") for name in files)
    assert "context/essential.tar" not in files, "nothing is bootstrapped"


def test_a_base_with_a_python_of_its_own_gets_no_other(here: Place) -> None:
    root = here.store.root / "stage" / "x"
    laid(here, root)
    assert list((root / "interpreter").iterdir()) == [], "there, for BuildKit wants the context, and empty"


@pytest.mark.parametrize(
    "damage", [Path.unlink, lambda path: path.write_bytes(b"x")], ids=["gone", "changed"]
)
def test_an_interpreter_is_proved_before_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], object]
) -> None:
    here = small.place(tmp_path, monkeypatch, matrices.with_ubuntu(only=True))
    assert here.lock.interpreter is not None
    damage(here.store.path(here.lock.interpreter.sha256))
    with pytest.raises(IntegrityError, match=here.lock.interpreter.sha256):
        laid(here, here.store.root / "stage" / "x")


def test_a_source_archive_lies_apart(here: Place) -> None:
    data = b"the source of wrapt"
    source = Wheel(
        name="wrapt",
        version="1.12.1",
        filename="wrapt-1.12.1.tar.gz",
        size=len(data),
        sha256=small.put(here.store, data),
        layer="source",
    )
    root = here.store.root / "stage" / "x"
    context.stage(replace(here.lock, wheels=(*here.lock.wheels, source)), FILES, here.store, root)
    assert (root / "wheels" / "source" / source.filename).read_bytes() == data
    assert "wrapt==1.12.1 --hash" in (root / "wheels" / "source" / "requirements.txt").read_text()
    assert "wrapt" not in (root / "wheels" / "python" / "requirements.txt").read_text()


def test_what_the_build_writes_lies_beside_the_contexts(here: Place) -> None:
    root = here.store.root / "stage" / "x"
    staged = context.stage(here.lock, FILES, here.store, root)
    contexts = (staged.main, *staged.named.values())
    for path in (staged.archive, staged.metadata):
        assert path.parent == root and not path.exists()
        assert not any(path.is_relative_to(folder) for folder in contexts), "it would be an input"
    assert staged.archive != staged.metadata


def test_each_layer_has_its_own_requirements_by_hash(here: Place) -> None:
    files = laid(here, here.store.root / "stage" / "x")
    assert files["wheels/cuda/requirements.txt"].read_text().split("==")[0] == "nvidia-cublas-cu12"
    lines = files["wheels/python/requirements.txt"].read_text().splitlines()
    assert [line.split("==")[0] for line in lines] == ["pip", "tensorflow"]
    assert all(" --hash=sha256:" in line for line in lines)


def test_only_essential_packages_are_unpacked(here: Place) -> None:
    files = laid(here, here.store.root / "stage" / "x")
    with tarfile.open(files["context/essential.tar"]) as archive:
        assert "etc/debian_version" in archive.getnames()


def test_inputs_are_linked_and_not_copied(here: Place) -> None:
    files = laid(here, here.store.root / "stage" / "x")
    wheel = next(wheel for wheel in here.lock.wheels if wheel.name == "tensorflow")
    assert files[f"wheels/python/{wheel.filename}"].samefile(here.store.path(wheel.sha256))


def test_a_layer_without_wheels_has_its_folder(here: Place) -> None:
    lock = replace(here.lock, wheels=())
    context.stage(lock, FILES, here.store, here.store.root / "stage" / "x")
    assert (here.store.root / "stage" / "x" / "wheels" / "cuda" / "requirements.txt").read_text() == ""


def test_modes_do_not_follow_the_umask(here: Place, umask_077: None) -> None:
    root = here.store.root / "stage" / "x"
    laid(here, root)
    for path in root.rglob("*"):
        assert path.stat().st_mode & 0o7777 == (0o755 if path.is_dir() else 0o644), path


def test_the_same_bytes_under_any_umask(here: Place, umask_077: None) -> None:
    one = {name: path.read_bytes() for name, path in laid(here, here.store.root / "stage" / "1").items()}
    os.umask(0o022)
    two = {name: path.read_bytes() for name, path in laid(here, here.store.root / "stage" / "2").items()}
    assert one == two


def test_on_another_filesystem_inputs_are_copied(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(source: Path, target: Path) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link", str(source))

    monkeypatch.setattr(os, "link", link)
    files = laid(here, here.root / "elsewhere")
    wheel = next(wheel for wheel in here.lock.wheels if wheel.name == "tensorflow")
    copy = files[f"wheels/python/{wheel.filename}"]
    assert copy.read_bytes() == here.store.path(wheel.sha256).read_bytes()
    assert not copy.samefile(here.store.path(wheel.sha256))


@pytest.mark.parametrize("name", ["base-files", "uv", "tensorflow"])
def test_an_input_changed_on_disk_is_never_built_from(here: Place, tmp_path: Path, name: str) -> None:
    named: dict[str, DebianPackage | Wheel] = {i.name: i for i in here.lock.debian}
    named.update({i.name: i for i in here.lock.wheels})
    chosen = named[name]
    blob = here.store.path(chosen.sha256)
    blob.write_bytes(bytes(reversed(blob.read_bytes())))
    (tmp_path / "new").mkdir()
    with pytest.raises(IntegrityError, match="changed on disk"):
        context.stage(here.lock, FILES, here.store, tmp_path / "new")
    assert not blob.exists()


def test_a_missing_input_is_named(here: Place) -> None:
    wheel = here.lock.wheels[0]
    here.store.path(wheel.sha256).unlink()
    with pytest.raises(IntegrityError, match=wheel.sha256) as caught:
        laid(here, here.store.root / "stage" / "x")
    assert here.cell.name in caught.value.message
    assert "again" in caught.value.remedy


def test_a_full_disk_is_told(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(source))

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(NotReadyError, match="No space left") as caught:
        laid(here, here.store.root / "stage" / "x")
    assert "tfenv gc" in caught.value.remedy


def test_a_stage_goes_when_the_build_is_done(here: Place) -> None:
    with context.staged(here.lock, FILES, here.store, "x") as staged:
        assert staged.dockerfile.is_file()
        assert set(staged.named) == {"debs", "wheels", "interpreter"}
    assert not (here.store.root / "stage" / "x").exists()


def test_a_failed_builds_stage_stays_so_that_it_can_be_repeated(here: Place) -> None:
    with pytest.raises(BuildError), context.staged(here.lock, FILES, here.store, "x"):
        raise BuildError("step failed", remedy="r")
    assert (here.store.root / "stage" / "x" / "context" / "Dockerfile").is_file()


@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(), NotReadyError("d", remedy="r"), IntegrityError("x", remedy="r"), MemoryError()],
)
def test_any_other_stage_goes(here: Place, error: BaseException) -> None:
    with pytest.raises(type(error)), context.staged(here.lock, FILES, here.store, "x"):
        raise error
    assert not (here.store.root / "stage" / "x").exists()


def test_an_interrupt_while_staging_leaves_nothing(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tfenv.rootfs.write_essential_tar", stop)
    with pytest.raises(KeyboardInterrupt), context.staged(here.lock, FILES, here.store, "x"):
        raise AssertionError("staged")
    assert not (here.store.root / "stage" / "x").exists()


def test_what_a_killed_build_left_is_no_trouble(here: Place) -> None:
    old = here.store.root / "stage" / "x"
    (old / "context").mkdir(parents=True)
    (old / "context" / "Dockerfile").write_text("of another build")
    (old / "image.oci.tar").write_text("half")
    with context.staged(here.lock, FILES, here.store, "x") as staged:
        assert staged.dockerfile.read_text(encoding="utf-8") == FILES["Dockerfile"]
        assert not (old / "image.oci.tar").exists()


def test_staging_never_changes_the_store(here: Place) -> None:
    def told() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in here.store.blobs_dir.iterdir()}

    before = told()
    with context.staged(here.lock, FILES, here.store, "x"):
        pass
    assert told() == before
