"""What an audit cost and could not read: as data, as text, and as an exit code."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tfenv.audit.survey import Outcome
from tfenv.errors import EXIT_FAILED, EXIT_NOT_READY, EXIT_OK, NotReadyError, TfenvError

Told = tuple[dict[str, Any], str, int]
Trouble = tuple[str, TfenvError]


def told(
    file: Path, small: list[Outcome], large: list[Outcome], troubles: list[Trouble], *, changed: bool
) -> Told:
    """(data, text, exit code) of one run.

    Args:
        small: what became of each wheel's small files; large: of the libraries of those that speak for a
            release; troubles: what could not be read or believed.
    """
    now = [outcome for outcome in (*small, *large) if outcome.now]
    data = {
        "releases": len({outcome.wheel.version for outcome in small}),
        "wheels": len(small),
        "libraries_of": len(large),
        "read_now": len({outcome.wheel.filename for outcome in now}),
        "bytes_read_now": sum(outcome.fetched for outcome in now),
        "bytes_by_wheel": {outcome.wheel.filename: outcome.fetched for outcome in small},
        "bytes_by_wheel_with_libraries": {outcome.wheel.filename: outcome.fetched for outcome in large},
        "unread": [{"what": what, "message": e.message, "remedy": e.remedy} for what, e in troubles],
        "changed": changed,
    }
    lines = [
        f"{data['releases']} releases, {len(small)} wheels: {data['read_now']} read now "
        f"({_mega(sum(outcome.fetched for outcome in now))}), the others known by their hash",
        *_costs("small files", small),
        *_costs("libraries", large),
        *(f"could not be read: {what}: {e.message}\n  {e.remedy}" for what, e in troubles),
        f"{file}: {'written' if changed else 'unchanged'}",
    ]
    network = all(isinstance(error, NotReadyError) for _, error in troubles)
    code = EXIT_OK if not troubles else EXIT_NOT_READY if network else EXIT_FAILED
    return data, "\n".join(lines), code


def note(outcome: Outcome) -> str:
    """What to say while a run goes on."""
    said = outcome.error.message if outcome.error else f"{_mega(outcome.fetched)} read"
    return f"{outcome.wheel.filename}: {said}"


def _costs(what: str, outcomes: Iterable[Outcome]) -> list[str]:
    costs = sorted(outcome.fetched for outcome in outcomes if outcome.found)
    if not costs:
        return []
    middle = costs[len(costs) // 2]
    return [
        f"{what} of {len(costs)} wheels: {_mega(costs[0])} to {_mega(costs[-1])} each, median {_mega(middle)}"
    ]


def _mega(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
