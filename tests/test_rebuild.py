"""`tfenv rebuild`: restores, builds, compares on four levels, and says what is not to be had."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import small
from small import Place
from snapshots import Tell, bundle, data, titles
from tfenv import cli
from tfenv.snapshot.layout import Layout


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return small.place(tmp_path, monkeypatch)


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.run(arguments)
        return (code, *capsys.readouterr())

    return run


def test_identical(here: Place, tell: Tell, tmp_path: Path) -> None:
    kept = str(tmp_path / "kept")
    tell("archive", small.CELL, "--to", kept)
    shutil.rmtree(here.store.root)
    told = data(tell("rebuild", kept, "--offline", "--json"))
    assert told["outcome"] == "identical" and told["manifest"] == here.docker.manifest
    assert here.leftovers() == []
