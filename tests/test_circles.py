"""No two modules import each other, be it through others, within functions, or for types alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = [ROOT / "builder/tfenv", *(ROOT / "verifier").glob("tfenv_*")]


def modules(package: Path) -> dict[str, Path]:
    """The modules of a package by their names. Its faces only hand on what the modules have."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        if path.name != "__init__.py":
            found[".".join(path.relative_to(package.parent).with_suffix("").parts)] = path
    return found


def imported(name: str, text: str) -> Iterator[str]:
    """Whatever a module's import statements may mean by a module."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = name.split(".")[: -node.level] if node.level else []
            where = ".".join([*above, *([node.module] if node.module else [])])
            yield where
            yield from (f"{where}.{alias.name}" for alias in node.names)


def circle(texts: dict[str, str]) -> list[str]:
    """Modules that import each other in a ring; none where there is no ring."""
    graph = {name: {*imported(name, text)} & texts.keys() - {name} for name, text in texts.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_there_is_no_circle(package: Path) -> None:
    found = modules(package)
    assert found and circle({name: path.read_text("utf-8") for name, path in found.items()}) == []


@pytest.mark.parametrize(
    "back",
    [
        "from .a import x",
        "from . import a",
        "import p.a",
        "def f():\n    from p import a",
        "from p.a import y",
    ],
)
def test_a_circle_is_found(back: str) -> None:
    texts = {"p.a": "from .b import z", "p.b": "import p.c", "p.c": back}
    assert {*circle(texts)} == {"p.a", "p.b", "p.c"}
    assert circle({**texts, "p.c": "import os\nfrom .other import x"}) == []
