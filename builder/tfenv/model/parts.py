"""What the nouns of the matrix and of a lock are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CudaFrom = Literal["base", "wheels"]
BaseKind = Literal["debian", "nvidia"]
Layer = Literal["cuda", "python", "source", "tool"]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Something left out or kept on purpose, with the reason a person gave."""

    what: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Link:
    """A second name of a library, and why it is needed: ``name`` is opened, ``target`` exists."""

    name: str
    target: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """A Python that no base brings: a build of a named provider, by hash.

    Args:
        version: all of it, e.g. ``3.10.19``.
        path: below the provider's own address, and below any mirror of it.
        released: RFC 3339 time; files of the layer are never dated later.
    """

    provider: str
    version: str
    filename: str
    path: str
    sha256: str
    released: str
