"""When things end: the table of Python, Debian and Ubuntu, and NVIDIA's list of its images."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from tfenv import factfiles
from tfenv.errors import NotReadyError

ImageState = Literal["supported", "unsupported", "removed"]


@dataclass(frozen=True, kw_only=True)
class EndOfLife:
    """Last days, and the state of NVIDIA's images.

    Args:
        python: last day by version, e.g. ``3.9``.
        systems: last day by base, e.g. ``debian12``, ``ubuntu22.04``.
        images: state by CUDA version of the tag, e.g. ``12.2.2``; ``unsupported`` ones may be deleted.
        branches: last day by driver branch, e.g. ``535``; came_with: branch by CUDA, e.g. ``12.2``.
        policy: what NVIDIA says of the end of tags; as_of: RFC 3339 day of its list.
    """

    python: Mapping[str, date] = field(default_factory=dict)
    systems: Mapping[str, date] = field(default_factory=dict)
    images: Mapping[str, ImageState] = field(default_factory=dict)
    branches: Mapping[str, date] = field(default_factory=dict)
    came_with: Mapping[str, str] = field(default_factory=dict)
    policy: str = ""
    as_of: str = ""

    def image_state(self, reference: str) -> ImageState | None:
        """Of an image such as ``nvidia/cuda:12.2.2-base-ubuntu22.04``; None where nothing is known of it."""
        return self.images.get(_cuda_of(reference))

    def image_branch(self, reference: str) -> tuple[str, date] | None:
        """The driver branch that an image's CUDA came with, and its last day; None where not known."""
        branch = self.came_with.get(".".join(_cuda_of(reference).split(".")[:2]), "")
        return (branch, self.branches[branch]) if branch in self.branches else None


def end_of_life() -> EndOfLife:
    """The committed tables. Raises NotReadyError where they cannot be read."""
    try:
        table = factfiles.read("eol")
        images = factfiles.read("nvidia_images")
        toolkits = factfiles.read("drivers")["toolkit"]["rows"]
        return EndOfLife(
            python=_days(table["python"]["rows"]),
            systems={
                f"{system}{release}": day
                for system in ("debian", "ubuntu")
                for release, day in _days(table[system]["rows"]).items()
            },
            images={cuda: known["state"] for cuda, known in images["tags"].items()},
            branches=_days(table["driver"]["rows"]),
            came_with={cuda: drivers["GA"].split(".")[0] for cuda, drivers in toolkits.items()},
            policy=images["policy"],
            as_of=images["as_of"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NotReadyError(
            f"the end-of-life tables cannot be read: {error}", remedy="restore the checkout or the package"
        ) from error


def _cuda_of(reference: str) -> str:
    match = re.search(r"nvidia/cuda:(\d[\d.]*)-", reference)
    return match[1] if match else ""


def _days(rows: Mapping[str, str]) -> dict[str, date]:
    return {name: date.fromisoformat(day) for name, day in rows.items()}
