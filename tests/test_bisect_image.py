"""Environments in a cell's image: what has to be changed in it, and the whole in a real engine."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from bisect_index import served
from small import CELL
from tfenv import cli
from tfenv.bisect.image import Installed, plan
from tfenv.bisect.model import Pin, PinSet
from tfenv.bisect.venv import BuildRefused

ROOT = Path(__file__).parent.parent


def pins(**versions: str) -> PinSet:
    return PinSet.of(Pin(name=n.replace("_", "-"), version=v) for n, v in versions.items())


def there(**versions: str) -> dict[str, Installed]:
    return {name.replace("_", "-"): Installed(version, ()) for name, version in versions.items()}


def test_only_what_differs_is_installed() -> None:
    found = plan(pins(a="1", b="2", new="1"), there(a="1", b="1", gone="1"))
    assert found.install == pins(b="2", new="1")
    assert found.remove == ("gone",)
    nothing = plan(pins(a="1"), there(a="1", pip="24"))
    assert (nothing.install.pins, nothing.remove) == ((), ())


@pytest.mark.parametrize("versions", [{"nvidia_cublas": "13"}, {}])
def test_other_cuda_libraries_are_another_image(versions: dict[str, str]) -> None:
    with pytest.raises(BuildRefused, match="CUDA is another one"):
        plan(pins(a="1", **versions), there(a="1", nvidia_cublas="12"))


@pytest.mark.image
def test_a_package_that_breaks_is_found_in_the_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The cell's own lock against the same with three packages changed, of which one cannot be imported."""
    lock = (ROOT / "images" / CELL / "requirements.lock").read_text()
    for name in list(os.environ):
        if name.startswith(("UV_", "PIP_", "TFENV_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("TFENV_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TFENV_MATRIX", str(ROOT / "matrix.yaml"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "check.py").write_text("import six, os; assert os.getcwd() == '/workspace'; open('ran', 'a')")
    with served() as index:
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"{index.url}/simple")
        for name, code in (("termcolor", ""), ("six", "raise ImportError('no six')"), ("wrapt", "")):
            index.add(name, "999", "2024-01-01T00:00:00Z", code)
            line = f"{name}==999 --hash=sha256:{index.hash(name, '999')}"
            lock = re.sub(rf"^{name}==.*$", line, lock, flags=re.MULTILINE)
        (tmp_path / "bad.txt").write_text(lock)
        ends = ["--good", CELL, "--bad", "bad.txt", "--in", "image", "--json"]
        assert cli.run(["bisect", *ends, "--", "python", "check.py"]) == 0
    found = json.loads(capfd.readouterr().out)
    (culprit,) = found["culprits"]
    assert [change["name"] for change in culprit["changes"]] == ["six"]
    assert culprit["why"].endswith("ImportError: no six")
    assert found["constraints"] == ["six<999"]
    assert found["constraints_tested"] == "good"
    assert (tmp_path / "ran").stat().st_uid == os.getuid()
    assert not list((tmp_path / "cache" / "bisect").glob("*/mount"))
