"""Faults inside Python: imported at the start of each Python process of the suite, through PYTHONPATH.

$TFENV_TEST_SEEDS names the faults, with commas: functions of the modules beside this one, each of which
is called once the module that it changes has been imported. Nothing is changed where it names none.
Runs on every Python that an image has.
"""

from __future__ import annotations

import builtins
import os
import sys
from typing import Any

import seed_driver
import seed_suite
import seed_tensorflow

SEEDS: dict[str, tuple[str, Any]] = {
    **{name: ("tensorflow", seed) for name, seed in seed_tensorflow.SEEDS.items()},
    **seed_suite.SEEDS,
}
_import = builtins.__import__


def _once_imported(waiting: list[tuple[str, Any]]) -> Any:
    """``__import__`` that calls what waits for a module as soon as that module is complete."""
    seeding: list[bool] = []

    def imported(name: str, *arguments: Any, **more: Any) -> Any:
        module = _import(name, *arguments, **more)
        for entry in [] if seeding else list(waiting):
            found = sys.modules.get(entry[0])
            if found is not None and not getattr(found.__spec__, "_initializing", False):
                waiting.remove(entry)
                seeding.append(True)  # what a seed imports makes no other seed start
                entry[1](found)
                seeding.clear()
        return module

    return imported


def start(names: list[str]) -> None:
    driver = [name for name in names if name in seed_driver.NAMES]
    if driver:
        seed_driver.start(driver)
    waiting = [SEEDS[name] for name in names if name not in driver]
    if waiting:
        builtins.__import__ = _once_imported(waiting)


start([name for name in os.environ.get("TFENV_TEST_SEEDS", "").split(",") if name])
