"""`tfenv archive`: a bundle holds all that a build reads, once, and is rehashed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import small
from small import Place
from snapshots import Tell, bundle, data, titles
from tfenv import cli, pipeline
from tfenv.report import Check, Report, write
from tfenv.report import Host as ReportHost
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


def test_a_bundle_holds_all_that_a_build_reads(here: Place, tell: Tell, tmp_path: Path) -> None:
    told = data(tell("archive", small.CELL, "--to", str(tmp_path / "kept"), "--json"))
    assert told["snapshot"] == f"{tmp_path}/kept:{small.CELL}" and not told["known"]
    layout, manifest = bundle(tmp_path / "kept")
    held = titles(manifest)
    lock = here.lock
    assert {f"wheels/{w.layer}/{w.filename}" for w in lock.wheels} <= held
    assert {f"debs/{'essential' if p.essential else 'rest'}/{p.filename}" for p in lock.debian} <= held
    tools = {f"context/tools/{n}" for n in ("bootstrap.sh", "settle.sh", "trim.py")}
    assert {"context/Dockerfile", "context/essential.tar", "lock.json", *tools} <= held
    assert {"expected/manifest.json", "expected/config.json", "expected/tree.jsonl.zst"} <= held
    assert told["files"] == len(held)
    document = json.loads(layout.read(manifest.document))
    assert document["format"] == 1 and document["expected"]["manifest"] == here.docker.manifest
    assert document["builder"]["engine"] == "26.1.5" and document["builder"]["buildx"].startswith("0.19.3")
