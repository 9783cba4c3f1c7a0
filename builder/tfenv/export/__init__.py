"""A cell for those without Docker, or with tools of their own: one file a format, made from its lock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .apptainer import apptainer
from .compose import compose
from .conda import conda
from .devcontainer import devcontainer
from .pip import pip
from .subject import Subject


@dataclass(frozen=True)
class Format:
    """One format: the usual name of its file, how it is made, and what it is for."""

    filename: str
    make: Callable[[Subject], str]
    what: str


FORMATS: Mapping[str, Format] = {
    "pip": Format("requirements.txt", pip, "all wheels by hash, NVIDIA's among them"),
    "conda": Format("environment.yml", conda, "Python from conda, the wheels by hash from pip"),
    "apptainer": Format("tfenv.def", apptainer, "an Apptainer or Singularity image of the same layers"),
    "devcontainer": Format("devcontainer.json", devcontainer, "for VS Code and GitHub Codespaces"),
    "compose": Format("compose.yaml", compose, "for docker compose, with the host's GPUs"),
}

__all__ = ["FORMATS", "Format", "Subject"]
