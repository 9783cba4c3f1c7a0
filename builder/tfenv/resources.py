"""Where the files that travel with the package are: beside it in a wheel, above it in a checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _data(name: str) -> Path:
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent.parent / name


def templates_dir() -> Path:
    """The Jinja2 templates."""
    return _data("templates")


def verifier_dir() -> Path:
    """The sources of the verification suite."""
    return _data("verifier")


def checkout_matrix() -> Path | None:
    """The matrix.yaml of the checkout that this package is used from; None in an installed wheel."""
    if (_PACKAGE / "_data").is_dir():
        return None
    found = _PACKAGE.parent.parent / "matrix.yaml"
    return found if found.is_file() else None


def facts_dir() -> Path:
    """The committed facts: data files with a source beside every number."""
    return _PACKAGE / "facts"


def own_matrix() -> Path:
    """tfenv's own matrix.yaml: what a team's matrix is made from."""
    installed = _PACKAGE / "_data" / "matrix.yaml"
    return installed if installed.is_file() else _PACKAGE.parent.parent / "matrix.yaml"


def own_images() -> Path:
    """The locks and digests of the cells of tfenv's own matrix; the folder may lack some, or all."""
    return _data("images")
