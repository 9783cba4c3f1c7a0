from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tfenv.errors import TfenvError
from tfenv.lockfile import (
    dump_lock,
    load_lock,
    lock_hash,
    read_lock,
    requirement_lines,
    requirements_lock,
)
from tfenv.model import DebianPackage, Interpreter, Link, Lock, Rule, Wheel

HEX = "0123456789abcdef"


def wheel(name: str = "numpy", version: str = "1.26.4", layer: Any = "python", **more: Any) -> Wheel:
    filename = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    values: dict[str, Any] = {"filename": filename, "size": 5, "sha256": "a" * 64, **more}
    return Wheel(name=name, version=version, layer=layer, **values)


def deb(name: str = "libc6", version: str = "2.36-9+deb12u14", **more: Any) -> DebianPackage:
    values: dict[str, Any] = {
        "architecture": "amd64",
        "archive": "debian",
        "path": f"pool/main/l/{name}_{version.split(':')[-1]}_amd64.deb",
        "size": 7,
        "sha256": "b" * 64,
        "essential": True,
        **more,
    }
    return DebianPackage(name=name, version=version, **values)


LOCK = Lock(
    cell="2.15.1-cu12.2-cudnn8.9-py3.11-debian12",
    platform="linux/amd64",
    epoch=1710892800,
    cuda_epoch=1690000000,
    base_epoch=1686355200,
    base_image="",
    base_digest="",
    requirements=("tensorflow==2.15.1", "pip", "nvidia-cublas-cu12==12.2"),
    exclude_newer="2024-03-20T00:00:00Z",
    wheel_platform="x86_64-manylinux_2_36",
    cuda_from="wheels",
    require_cuda="cuda>=12.1 cuda>=12.0,arch<9.0",
    template="c" * 64,
    uv="0.9.9",
    interpreter=None,
    suite="bookworm",
    debian_packages=("libstdc++6", "python3.11"),
    debian_locked_at="2025-11-30T11:00:00Z",
    debian=(deb("base-files", "1:1"), deb()),
    wheels=(wheel(), wheel("nvidia-cublas-cu12", "12.2", "cuda"), wheel("uv", "0.9.9", "tool")),
    trim=(Rule(what="nvidia/*/include/**", why="headers: nothing compiles here"),),
    without=(Rule(what="nvidia-nccl-cu12", why="never loaded"),),
)


def edited(change: Callable[[dict[str, Any]], object]) -> str:
    data = json.loads(dump_lock(LOCK))
    change(data)
    return json.dumps(data)


def test_what_is_written_is_read_back() -> None:
    assert load_lock(dump_lock(LOCK)) == LOCK


def test_the_text_is_canonical_and_diffs_by_package() -> None:
    text = dump_lock(LOCK)
    assert text.endswith("}\n")
    assert list(json.loads(text)) == sorted(json.loads(text))
    changed = dump_lock(replace(LOCK, wheels=(replace(LOCK.wheels[0], size=6), *LOCK.wheels[1:])))
    differing = [line for line in changed.splitlines() if line not in text.splitlines()]
    assert len(differing) == 1
    assert "numpy" in differing[0]
    assert "http" not in text


def test_the_hash_is_that_of_the_content() -> None:
    assert lock_hash(LOCK) == lock_hash(load_lock(dump_lock(LOCK)))
    assert lock_hash(LOCK) != lock_hash(replace(LOCK, epoch=LOCK.epoch + 1))


SHA = f"sha256:{'5' * 64}"
PYTHON = Interpreter(
    provider="python-build-standalone",
    version="3.11.9",
    filename="cpython-3.11.9+20251031-x86_64-unknown-linux-gnu-install_only_stripped.tar.gz",
    path="20251031/cpython-3.11.9+20251031-x86_64-unknown-linux-gnu-install_only_stripped.tar.gz",
    sha256="d" * 64,
    released="2025-10-31T00:00:00Z",
)
ON_IMAGE = replace(
    LOCK,
    cell="2.15.1-cu12.2-cudnn8.9-py3.11-ubuntu22.04",
    base_epoch=0,
    base_image="nvidia/cuda:12.2.2-base-ubuntu22.04",
    base_digest=SHA,
    wheel_platform="x86_64-manylinux_2_35",
    interpreter=PYTHON,
    suite="",
    debian_packages=(),
    debian_locked_at="",
    debian=(),
    links=(Link(name="libcupti.so.11.2", target="libcupti.so.11.8", why="it is opened by this name"),),
)


def on_image(change: Callable[[dict[str, Any]], object]) -> str:
    data = json.loads(dump_lock(ON_IMAGE))
    change(data)
    return json.dumps(data)


def test_a_lock_of_an_image_is_read_back() -> None:
    assert load_lock(dump_lock(ON_IMAGE)) == ON_IMAGE
    for some in ({"base_digest": ""}, {"links": ()}, {"cuda_from": "base", "links": ()}):
        lock = replace(ON_IMAGE, **some)
        assert load_lock(dump_lock(lock)) == lock
    bootstrapped = replace(LOCK, interpreter=PYTHON)
    assert load_lock(dump_lock(bootstrapped)) == bootstrapped


def test_a_lock_is_complete_once_its_image_has_a_digest() -> None:
    assert LOCK.complete and ON_IMAGE.complete
    assert not replace(ON_IMAGE, base_digest="").complete


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d.update(base_image="nvidia/cuda:12\nRUN id"), "base_image.*not allowed"),
        (lambda d: d.update(base_image="nvidia/cuda"), "base_image.*not allowed"),
        (lambda d: d.update(base_image="nvidia/cuda:12 AS x"), "base_image.*not allowed"),
        (lambda d: d.update(base_image="$BASE:12"), "base_image.*not allowed"),
        (lambda d: d.update(base_image=f"nvidia/cuda:12@{SHA}"), "base_image.*not allowed"),
        (lambda d: d.update(base_image=None), "base_image: expected str"),
        (lambda d: d.update(base_digest="sha256:55"), "base_digest.*not allowed"),
        (lambda d: d.update(base_digest=SHA + "\n"), "base_digest.*not allowed"),
        (lambda d: d.update(base_digest=SHA.upper()), "base_digest.*not allowed"),
        (lambda d: d.update(wheel_platform="x86_64"), "wheel_platform.*not allowed"),
        (lambda d: d.update(wheel_platform="x86_64-manylinux_2_3\u0665"), "wheel_platform.*not allowed"),
        (lambda d: d.update(wheel_platform="--python-version"), "wheel_platform.*not allowed"),
        (lambda d: d.update(cuda_epoch=-1), "cuda_epoch: -1 is negative"),
        (lambda d: d.update(cuda_epoch="1"), "cuda_epoch: expected int"),
        (lambda d: d.update(interpreter="python"), "interpreter: expected an object"),
        (lambda d: d.update(interpreter=None), "interpreter: nvidia/cuda:12.2.2-base-ubuntu22.04 brings no"),
        (lambda d: d["interpreter"].pop("sha256"), "interpreter.missing key sha256"),
        (lambda d: d["interpreter"].update(sha256=""), r"interpreter\.sha256.*not allowed"),
        (lambda d: d["interpreter"].update(sha256=None), r"interpreter\.sha256: expected str"),
        (lambda d: d["interpreter"].update(url="x"), "interpreter.unknown key url"),
        (lambda d: d["interpreter"].update(filename="../x.tar.gz"), r"interpreter\.filename.*not allowed"),
        (lambda d: d["interpreter"].update(filename="x.whl"), r"interpreter\.filename.*not allowed"),
        (lambda d: d["interpreter"].update(path="../x.tar.gz"), r"interpreter\.path.*not allowed"),
        (lambda d: d["interpreter"].update(path="https://x/x.tar.gz"), r"interpreter\.path.*not allowed"),
        (lambda d: d["interpreter"].update(path="1/../x.tar.gz"), r"interpreter\.path.*not allowed"),
        (lambda d: d["interpreter"].update(version="3.11 && id"), r"interpreter\.version.*not allowed"),
        (lambda d: d["interpreter"].update(provider="x\nRUN id"), r"interpreter\.provider.*not allowed"),
        (lambda d: d["interpreter"].update(released="today"), r"interpreter\.released.*not allowed"),
        (lambda d: d["interpreter"].update(released="2025-13-31T00:00:00Z"), "month must be in"),
        (lambda d: d["links"][0].update(name="../libx.so"), r"links\[0\]\.name.*not allowed"),
        (lambda d: d["links"][0].update(name="libx.so.1 libc.so.6"), r"links\[0\]\.name.*not allowed"),
        (lambda d: d["links"][0].update(name="python3"), r"links\[0\]\.name.*not allowed"),
        (lambda d: d["links"][0].update(target="/etc/passwd"), r"links\[0\]\.target.*not allowed"),
        (lambda d: d["links"][0].update(target="libx.so; id"), r"links\[0\]\.target.*not allowed"),
        (lambda d: d["links"][0].update(why="a\nRUN id"), r"links\[0\]\.why.*not allowed"),
        (lambda d: d.update(suite="jammy"), "is not bootstrapped"),
        (lambda d: d.update(debian=json.loads(dump_lock(LOCK))["debian"]), "is not bootstrapped"),
        (lambda d: d.update(base_image=""), "base_digest: there is no base_image"),
        (
            lambda d: d.update(base_image="", base_digest="", cuda_from="base"),
            "cuda_from: there is no base_im",
        ),
        (lambda d: d.update(cuda_from=""), "cuda_from: expected one of 'base', 'wheels'"),
    ],
)
def test_no_hostile_value_of_an_image_a_python_or_a_link_is_read(
    change: Callable[[dict[str, Any]], object], says: str
) -> None:
    with pytest.raises(TfenvError, match=says):
        load_lock(on_image(change))


def test_a_source_archive_is_one_only_in_its_own_layer() -> None:
    source = wheel("wrapt", "1.12.1", "source", filename="wrapt-1.12.1.tar.gz")
    lock = replace(LOCK, wheels=(*LOCK.wheels, source))
    assert load_lock(dump_lock(lock)) == lock
    assert "# layer source" in requirements_lock(lock)
    for wrong in (replace(source, layer="python"), replace(source, filename="wrapt-1.12.1-py3-none-any.whl")):
        with pytest.raises(TfenvError, match="wheels: Invalid"):
            load_lock(dump_lock(replace(LOCK, wheels=(*LOCK.wheels, wrong))))
    with pytest.raises(TfenvError, match=r"is not wrapt 1\.12\.2"):
        load_lock(dump_lock(replace(LOCK, wheels=(*LOCK.wheels, replace(source, version="1.12.2")))))


@given(cut=st.integers(min_value=0, max_value=len(dump_lock(LOCK)) - 1))
def test_a_truncated_lock_is_refused(cut: int) -> None:
    with pytest.raises(TfenvError, match="cannot be used"):
        load_lock(dump_lock(LOCK)[:cut])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "it is no lock"),
        ("<<<<<<< HEAD\n", "not JSON"),
        (edited(lambda d: d.update(format=1)), "its format is 1"),
        (edited(lambda d: d.pop("format")), "its format is None"),
        (edited(lambda d: d.pop("uv")), "missing key uv"),
        (edited(lambda d: d.update(more=1)), "unknown key more"),
        (edited(lambda d: d["wheels"][1].update(url="x")), r"wheels\[1\]\.unknown key url"),
        (edited(lambda d: d.update(epoch="1")), "epoch: expected int"),
        (edited(lambda d: d.update(epoch=True)), "epoch: expected int"),
        (edited(lambda d: d.update(epoch=-1)), "negative"),
        (edited(lambda d: d.update(cuda_from="both")), "cuda_from: expected one of"),
        (edited(lambda d: d.update(wheels={})), "wheels: expected a list"),
        (edited(lambda d: d.update(wheels=["x"])), "expected an object"),
        (edited(lambda d: d.update(exclude_newer="yesterday")), "exclude_newer"),
        (edited(lambda d: d.pop("requirements")), "missing key requirements"),
        (edited(lambda d: d["requirements"].append("x\nRUN y")), r"requirements\[3\].*not allowed"),
        (edited(lambda d: d["requirements"].append("--index-url=x")), "not allowed"),
        (edited(lambda d: d["debian_packages"].append("-oDebug=1")), r"debian_packages\[2\].*not allowed"),
        (edited(lambda d: d.update(require_cuda='cuda>=12.1" LABEL')), "require_cuda.*not allowed"),
        (edited(lambda d: d.update(require_cuda="")), "require_cuda.*not allowed"),
        (edited(lambda d: d["wheels"][0].update(sha256="A" * 64)), "sha256"),
        (edited(lambda d: d["wheels"][0].update(size=1.5)), "size: expected int"),
        (edited(lambda d: d["wheels"][0].update(filename="../x-1-py3-none-any.whl")), "filename"),
        (edited(lambda d: d["wheels"][0].update(filename="a/x-1-py3-none-any.whl")), "filename"),
        (edited(lambda d: d["wheels"][0].update(filename="other-1-py3-none-any.whl")), "is not numpy"),
        (edited(lambda d: d["wheels"][0].update(filename="numpy.whl")), "Invalid wheel filename"),
        (edited(lambda d: d["wheels"][0].update(version="1.0\nRUN x")), "not allowed"),
        (edited(lambda d: d["debian"][0].update(path="pool/../../x.deb")), "not allowed"),
        (edited(lambda d: d["debian"][0].update(path="/pool/main/x.deb")), "not allowed"),
        (edited(lambda d: d["debian"][0].update(path="pool/main/x.deb; rm")), "not allowed"),
        (edited(lambda d: d["debian"][0].update(archive="ubuntu")), "archive"),
        (edited(lambda d: d["debian"].reverse()), "not sorted"),
        (edited(lambda d: d["debian"].insert(0, d["debian"][0])), "base-files is there twice"),
        (edited(lambda d: d["trim"][0].update(what="../../etc/*")), "leaves the folder"),
        (edited(lambda d: d["trim"][0].update(what="/etc/*")), "leaves the folder"),
        (edited(lambda d: d["trim"][0].update(what="x y")), "not allowed"),
        (edited(lambda d: d["trim"][0].update(why="a\nRUN x")), "not allowed"),
        (edited(lambda d: None), "reformatted or edited"),
        (dump_lock(LOCK).replace("\n", "\r\n"), "reformatted or edited"),
    ],
)
def test_a_damaged_lock_says_where(text: str, says: str) -> None:
    with pytest.raises(TfenvError, match=says) as caught:
        load_lock(text, where="images/x/lock.json")
    assert caught.value.message.startswith("images/x/lock.json")
    assert caught.value.remedy


def test_a_lock_is_read_from_its_cells_folder(tmp_path: Path) -> None:
    path = tmp_path / LOCK.cell / "lock.json"
    with pytest.raises(TfenvError, match="is not locked") as caught:
        read_lock(path)
    assert caught.value.remedy == f"tfenv lock {LOCK.cell}"
    path.parent.mkdir()
    path.write_text(dump_lock(LOCK))
    assert read_lock(path) == LOCK
    path.parent.rename(tmp_path / "other")
    with pytest.raises(TfenvError, match="another cell"):
        read_lock(tmp_path / "other" / "lock.json")
    (tmp_path / "other" / "lock.json").write_bytes(b"\xff\xfe")
    with pytest.raises(TfenvError, match="cannot be read"):
        read_lock(tmp_path / "other" / "lock.json")


def test_requirements_are_what_pip_reads() -> None:
    from packaging.requirements import Requirement

    text = requirements_lock(LOCK)
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert lines == [
        f"nvidia-cublas-cu12==12.2 --hash=sha256:{'a' * 64}",
        f"numpy==1.26.4 --hash=sha256:{'a' * 64}",
    ]
    assert [Requirement(line.split(" ")[0]).name for line in lines] == ["nvidia-cublas-cu12", "numpy"]
    assert "# layer cuda" in text
    assert f"# uv==0.9.9 --hash=sha256:{'a' * 64}" in text


def test_lines_of_one_layer() -> None:
    assert requirement_lines(LOCK.wheels, "tool") == (f"uv==0.9.9 --hash=sha256:{'a' * 64}",)
    assert requirement_lines((), "cuda") == ()


def test_a_lock_nested_without_end_is_refused() -> None:
    with pytest.raises(TfenvError, match="not JSON"):
        load_lock("[" * 100_000)
