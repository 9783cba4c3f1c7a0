"""The options that ``stress`` and ``bench`` share."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tfenv.commands._common import gpus_option, not_with_lines, require_digest
from tfenv.errors import UsageError

if TYPE_CHECKING:
    from tfenv.load.session import Place

_F = TypeVar("_F", bound=Callable[..., Any])
_FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)
MODELS = ("resnet50", "transformer")  # that load.pyz has
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


class Duration(click.FloatRange):
    """A range of durations, of which none is endless or no number at all."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """A number within the range."""
        found = float(super().convert(value, param, ctx))
        if not math.isfinite(found):  # NaN is neither below nor above
            self.fail(f"{value} is no duration.", param, ctx)
        return found


def place_options(function: _F) -> _F:
    """Where to run, what to take instead, where to write; and for development ``--allow-cpu``."""
    for decorate in (
        click.option("--allow-cpu", is_flag=True, hidden=True, help="Tiny, on the CPU: for development."),
        click.option("--reports", type=click.Path(path_type=Path), help="Folder for the reports."),
        click.option(
            "--lines", type=_FILE, help="Take what load.pyz printed elsewhere, in the image of CELL's digest."
        ),
        click.option("--bare", is_flag=True, help="With --lines: they were printed without a container."),
        click.option(
            "--digest", default="", help="With --lines or --python: of the image there, if none is recorded."
        ),
        click.option("--python", type=_FILE, help="Run without a container, under this Python, to compare."),
        click.option("--rootfs", type=_FOLDER, help="Run in an unpacked image, where there is no Docker."),
        gpus_option,
    ):
        function = decorate(function)
    return function


def models_option(function: _F) -> _F:
    """``--models``: what is trained."""

    def read(_ctx: click.Context, _option: click.Parameter, value: str) -> str:
        names = list(dict.fromkeys(name.strip() for name in value.split(",")))
        if wrong := [name for name in names if name not in MODELS]:
            raise click.BadParameter(f"{wrong[0]!r} is none of {', '.join(MODELS)}.")
        return ",".join(names)

    return click.option(
        "--models", default=",".join(MODELS), show_default=True, callback=read, help="What is trained."
    )(function)


def place_of(
    gpus: str,
    rootfs: Path | None,
    python: Path | None,
    lines: Path | None,
    digest: str,
    bare: bool,
    allow_cpu: bool,
) -> Place:
    """The options as one.

    Raises:
        UsageError: ``--bare`` without ``--lines``, GPUs for lines that are printed already, or a digest
            that nothing takes.
    """
    from tfenv.load.session import Place

    not_with_lines(lines, gpus)
    require_digest(digest, bool(lines or python), "--lines and --python")
    if bare and lines is None:
        raise UsageError("--bare says how --lines were printed", remedy="name the file with --lines")
    return Place(
        gpus=gpus, rootfs=rootfs, python=python, lines=lines, digest=digest, bare=bare, allow_cpu=allow_cpu
    )
