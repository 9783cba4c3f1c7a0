"""Everything that was asked, as one value that a journal can hold: with it alone a bisection goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, cast

from tfenv.bisect.journal import identity
from tfenv.bisect.model import Endpoint, pins_from_plain, pins_to_plain

Where = Literal["venv", "image"]


@dataclass(frozen=True, kw_only=True)
class Question:
    """One bisection.

    Args:
        good, bad: the ends.
        command, repeat, timeout: see ``testing.Trial``.
        python: ``3.11``. interpreter: of this host, or a path; empty where an image brings it.
        platform: what wheels are chosen for, e.g. ``x86_64-manylinux_2_36``.
        where: how environments are made. image: on which one, where they are made so.
        cuda: NVIDIA's wheels are part of it. gpus: the image gets the host's GPUs.
        folder: where the command runs.
        asked_by: ``cell`` or ``file``, and which one; what the constraint is pasted into.
    """

    good: Endpoint
    bad: Endpoint
    command: tuple[str, ...]
    python: str
    interpreter: str
    platform: str
    folder: str
    repeat: int = 1
    timeout: float | None = None
    where: Where = "venv"
    image: str = ""
    cuda: bool = False
    gpus: bool = False
    asked_by: tuple[str, str] = ("", "")

    def plain(self) -> dict[str, Any]:
        """As data for JSON."""
        return {
            **asdict(replace(self, good=Endpoint(label=""), bad=Endpoint(label=""))),
            "good": _end_to_plain(self.good),
            "bad": _end_to_plain(self.bad),
        }

    @property
    def name(self) -> str:
        """The same for the same question asked again on the same day."""
        plain = self.plain()
        for end in ("good", "bad"):
            plain[end]["when"] = plain[end]["when"][:10]
        return identity(plain)


def question_from_plain(data: Mapping[str, Any]) -> Question:
    """From a journal. Raises ValueError, TypeError or KeyError for what is none."""
    known = dict(data)
    kind, label = known["asked_by"]
    return Question(
        **{
            **known,
            "good": _end_from_plain(known["good"]),
            "bad": _end_from_plain(known["bad"]),
            "command": tuple(map(str, known["command"])),
            "asked_by": (str(kind), str(label)),
            "where": cast(Where, known["where"]),
        }
    )


def _end_to_plain(end: Endpoint) -> dict[str, Any]:
    return {
        "label": end.label,
        "pins": None if end.pins is None else pins_to_plain(end.pins),
        "when": end.when,
        "requirements": list(end.requirements),
        "from_source": list(end.from_source),
        "without": list(end.without),
    }


def _end_from_plain(data: Mapping[str, Any]) -> Endpoint:
    return Endpoint(
        label=str(data["label"]),
        pins=None if data["pins"] is None else pins_from_plain(data["pins"]),
        when=str(data["when"]),
        requirements=tuple(map(str, data["requirements"])),
        from_source=tuple(map(str, data["from_source"])),
        without=tuple(map(str, data["without"])),
    )
