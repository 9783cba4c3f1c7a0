"""The browser that the matrix page is tried and pictured in."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parent.parent


def find_browser() -> str:
    """The browser that scripts/setup finds or installs.

    Raises:
        LookupError: there is none; says what to type.
    """
    done = subprocess.run(
        ["bash", "-c", ". scripts/lib/common.sh; find_browser"], cwd=ROOT, capture_output=True, text=True
    )
    if done.returncode:
        raise LookupError("there is no browser to open the page in; type: sudo scripts/setup browser")
    return done.stdout.strip()


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser without a window."""
    with sync_playwright() as playwright:
        # The page is our own; inside containers the sandbox cannot be had.
        made = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        yield made
        made.close()
