"""An image that declares nothing: what is wrong in ours is worth knowing there, and no more."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tfenv_verify.checks import _loaded, pip_check, pyc, record, second_cuda
from tfenv_verify.context import Context
from tfenv_verify.declared import Declared, Library
from tfenv_verify.protocol import Report

OURS, FOREIGN = Declared(cell="c"), Declared()


def twice(declared: Declared, folder: Path, monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "libcudnn.so.9").write_text(name)
    monkeypatch.setattr(second_cuda, "wheel_library_folders", lambda: [str(folder / "a"), str(folder / "b")])
    monkeypatch.setattr(second_cuda, "toolkit_folders", list)
    monkeypatch.setattr(second_cuda, "_ldconfig", lambda: "")
    second_cuda.check(Context(declared), report)


def conflict(declared: Declared, folder: Path, monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    done = SimpleNamespace(returncode=1, stdout=b"keras 3 requires six\n", stderr=b"")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: done)
    monkeypatch.setattr("subprocess.run", lambda *_, **__: done)
    pip_check.check(Context(declared), report)


def stale(declared: Declared, folder: Path, monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    (folder / "__pycache__").mkdir()
    (folder / "a.py").write_text("1")
    (folder / f"__pycache__/a.{sys.implementation.cache_tag}.pyc").write_text("x")
    monkeypatch.setattr(pyc, "python_folders", lambda: [str(folder)])
    pyc.check(Context(declared), report)


def changed(declared: Declared, folder: Path, monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    info = folder / "a-1.dist-info"
    info.mkdir()
    (folder / "a.py").write_text("changed")
    (info / "RECORD").write_text("a.py,sha256=AAAA,7\n")
    monkeypatch.setattr(record, "site_folders", lambda: [str(folder)])
    record.check(Context(declared), report)


def elsewhere(declared: Declared, folder: Path, monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    library = Library("cudart", "libcudart.so.12")
    other = {"path": "/usr/local/cuda/lib64/libcudart.so.12"}
    _loaded.inspect(declared, ["/wheel/libcudart.so.12"], [library], lambda _: other, report)


@pytest.mark.parametrize("fault", [twice, conflict, stale, changed, elsewhere])
def test_what_fails_in_ours_is_a_warning_there(
    fault: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: dict[str, list[Any]] = {}
    for name, declared in (("ours", OURS), ("foreign", FOREIGN)):
        folder, report = tmp_path / name, Report()
        folder.mkdir()
        with monkeypatch.context() as patch:
            fault(declared, folder, patch, report)
        said[name] = [finding["severity"] for finding in report.findings]
        assert report.status == ("fail" if name == "ours" else "pass")
    assert "error" in said["ours"] and "warning" in said["foreign"]
