"""The suite runs inside images: Python 3.7 syntax, standard library and TensorFlow only."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

VERIFIER = Path(__file__).resolve().parents[2] / "verifier"
SOURCES = sorted(VERIFIER.rglob("*.py"))
# Newer than 3.7, though the syntax is old enough.
TOO_NEW = {"importlib.metadata", "importlib.resources", "graphlib", "zoneinfo", "tomllib"}


def names(source: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.append(node.module or "")
    return found


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(VERIFIER)))
def test_python_3_7_parses_every_file(source: Path) -> None:
    ast.parse(source.read_text(), feature_version=(3, 7))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(VERIFIER)))
def test_only_the_standard_library_and_tensorflow_are_imported(source: Path) -> None:
    allowed = set(sys.stdlib_module_names) | {"tensorflow", "tfenv_verify", "tfenv_load", "tfenv_doctor"}
    for name in names(source):
        assert name.split(".")[0] in allowed, f"{source} imports {name}"
        assert name not in TOO_NEW, f"{source} imports {name}, which Python 3.7 does not have"


def test_feature_version_would_catch_newer_syntax() -> None:
    with pytest.raises(SyntaxError):
        ast.parse("if (n := 1): pass", feature_version=(3, 7))
