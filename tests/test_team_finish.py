"""The end of a layer of a team's packages: no file of the row is replaced, byte code is always the same."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "templates/team/finish.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("finish", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


finish = load()
SITE = Path("/opt/tfenv/venv/lib/python3.11/site-packages")


class Image:
    """A root with a row's files, and a layer to come on top."""

    def __init__(self, folder: Path) -> None:
        self.root, self.layer, self.wheels = folder / "root", folder / "layer", folder / "wheels"
        self.put(self.root, "opt/tfenv/constraints.txt", "numpy==1.26.4\nsix==1.16.0\n")
        self.put(self.root, f"{SITE}/numpy/__init__.py", "x = 1\n")
        for part, text in (
            ("python", "pandas==2.2.2 --hash=sha256:00\npip==24.0 --hash=sha256:00\n"),
            ("cuda", ""),
        ):
            self.put(self.wheels, f"{part}/requirements.txt", text)

    @staticmethod
    def put(top: Path, name: str, text: str) -> Path:
        path = top / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run(self) -> None:
        finish.main(self.layer, SITE, root=self.root, wheels=self.wheels)


@pytest.fixture
def image(tmp_path: Path) -> Image:
    made = Image(tmp_path)
    made.put(made.layer, f"{SITE}/pandas/__init__.py", "def f():\n    return 1\n")
    made.put(made.layer, f"{SITE}/pandas/template.py", "this is {no} Python\n")
    return made


def test_pip_is_told_of_the_teams_packages_beside_the_rows(image: Image) -> None:
    image.run()
    text = (image.layer / "opt/tfenv/constraints.txt").read_text()
    assert text == "numpy==1.26.4\npandas==2.2.2\nsix==1.16.0\n"


def test_byte_code_carries_the_sources_hash_and_its_later_path(image: Image) -> None:
    image.run()
    cache = image.layer / str(SITE).lstrip("/") / "pandas/__pycache__"
    (pyc,) = cache.glob("*.pyc")
    data = pyc.read_bytes()
    assert int.from_bytes(data[4:8], "little") == 0b01, "unchecked hash"
    assert str(image.root / str(SITE).lstrip("/") / "pandas/__init__.py").encode() in data
    assert str(image.layer).encode() not in data


def test_byte_code_is_the_same_every_time(tmp_path: Path) -> None:
    told = set()
    for seed in ("0", "0"):
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        source = folder / "a.py"
        folder.mkdir()
        source.write_text("NAMES = {'a', 'b', 'c'}\n")
        code = (
            f"import sys; sys.path.insert(0, {str(SCRIPT.parent)!r})\n"
            "import finish; from pathlib import Path\n"
            f"finish.compile_all(Path({str(folder)!r}), Path('/site'))"
        )
        subprocess.run([sys.executable, "-B", "-c", code], check=True, env={"PYTHONHASHSEED": seed})
        (pyc,) = (folder / "__pycache__").glob("*.pyc")
        told.add(pyc.read_bytes())
    assert len(told) == 1


def test_a_file_of_the_rows_is_not_replaced(image: Image) -> None:
    image.put(image.layer, f"{SITE}/numpy/__init__.py", "x = 2\n")
    with pytest.raises(SystemExit, match=r"would replace 1 files of the cell's:\n.*numpy/__init__\.py"):
        image.run()


def test_the_same_file_once_more_is_left_to_the_row(image: Image) -> None:
    twice = image.put(image.layer, f"{SITE}/numpy/__init__.py", "x = 1\n")
    image.run()
    assert not twice.exists() and not (twice.parent / "__pycache__").exists()


def test_a_link_in_place_of_a_file_is_no_same_file(image: Image) -> None:
    link = image.layer / str(SITE).lstrip("/") / "numpy/__init__.py"
    link.parent.mkdir(parents=True)
    link.symlink_to(image.root / str(SITE).lstrip("/") / "numpy/__init__.py")
    with pytest.raises(SystemExit, match="would replace 1 files"):
        image.run()


def test_a_link_of_the_rows_is_not_hidden_by_a_folder(image: Image) -> None:
    site = image.root / str(SITE).lstrip("/")
    (site / "nvidia").symlink_to("/opt/tfenv/cuda/nvidia")
    image.put(image.layer, f"{SITE}/nvidia/own/__init__.py", "")
    with pytest.raises(SystemExit, match="site-packages/nvidia"):
        image.run()


def test_a_new_folder_of_libraries_becomes_known_to_the_loader(
    image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = []

    def ldconfig(argv: list[str], check: bool) -> None:
        called.append(argv)
        image.put(image.root, "etc/ld.so.cache", "cache")

    monkeypatch.setattr(finish.subprocess, "run", ldconfig)
    image.put(image.root, "opt/tfenv/cuda/nvidia/cublas/lib/libcublas.so.12", "")
    image.put(image.root, "etc/ld.so.conf.d/00-tfenv-cuda.conf", "old\n")
    image.put(image.layer, "opt/tfenv/cuda/nvidia/nccl/lib/libnccl.so.2", "")
    image.run()
    assert called == [["ldconfig", "-X"]]
    lines = (image.layer / "etc/ld.so.conf.d/00-tfenv-cuda.conf").read_text().splitlines()
    assert [Path(line).relative_to(image.root).parts[-2] for line in lines] == ["cublas", "nccl"]
    assert (image.layer / "etc/ld.so.cache").read_text() == "cache"
    assert (image.root / "opt/tfenv/cuda/nvidia/nccl/lib/libnccl.so.2").exists(), "for ldconfig to see"


def test_without_libraries_the_loader_is_left_alone(image: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finish.subprocess, "run", lambda *_, **__: pytest.fail("nothing to tell"))
    image.run()
    assert not (image.layer / "etc").exists()


def test_the_scripts_are_shell_that_shellcheck_takes() -> None:
    for script in sorted(SCRIPT.parent.glob("*.sh")):
        done = subprocess.run(
            [Path(sys.executable).with_name("shellcheck"), "--shell=sh", script],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout
