"""What all tests share."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import small
from tfenv import cli, render, render_cache


@pytest.fixture(autouse=True, scope="session")
def signals_end_things() -> Iterator[None]:
    """Under `nohup` and in background jobs signals are ignored, and what is started inherits that."""
    usual = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
        signal.SIGHUP: signal.SIG_DFL,
    }
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def fresh_templates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program reads the templates once; a test that changes them has them read every time."""
    read = render.template_version.__wrapped__
    for module in (render, render_cache):
        monkeypatch.setattr(module, "template_version", read)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> small.Place:
    """A small matrix with its lock, its store and an engine, none of which is this machine's."""
    return small.place(tmp_path, monkeypatch)


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command line: (exit code, stdout, stderr)."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.run(arguments)
        return (code, *capsys.readouterr())

    return run
