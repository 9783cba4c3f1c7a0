"""A part of a check in a process of its own: one that may hang, or that needs TensorFlow untouched."""

from __future__ import annotations

import json
from typing import Any, Callable

from .context import Context
from .runner import Ended, run_child, signal_name, suite_command


def run_part(
    context: Context,
    name: str,
    arguments: dict[str, Any],
    seconds: float,
    stop: Callable[[], str] | None = None,
) -> dict[str, Any]:
    """What the part of the check ``name`` answers, or ``failed`` (why) with ``tail`` (its last output).

    ``hung`` is added to a failure where it had not ended after ``seconds`` and was killed, ``stopped``
    where it was killed because ``stop`` said why.
    """
    command = suite_command(
        "--part",
        name,
        json.dumps(dict(arguments, seconds=seconds)),
        "--gpu",
        json.dumps(context.gpu.as_json()),
        "--on-cpu",
        str(context.on_cpu),
    )
    # Not in a group of its own, so that the check's own kill reaches it too.
    return answer_of(run_child(command, seconds, own_group=False, stop=stop))


def answer_of(ended: Ended) -> dict[str, Any]:
    """The object that came through the pipe, if the process also ended well."""
    if ended.stopped:
        return {
            "failed": f"was ended after {ended.seconds:.0f} s: {ended.stopped}",
            "stopped": True,
            "tail": ended.tail,
        }
    if ended.timed_out:
        return {
            "failed": f"had not ended after {ended.seconds:.0f} s and was killed",
            "hung": True,
            "tail": ended.tail,
        }
    if ended.returncode < 0:
        return {"failed": f"was killed by {signal_name(-ended.returncode)}", "tail": ended.tail}
    try:
        found = json.loads(ended.result.decode("utf-8"))
        if isinstance(found, dict) and ended.returncode == 0:
            return found
    except ValueError:
        pass
    last = ended.tail.strip().splitlines()[-1:] or ["without a word"]
    return {"failed": f"ended with code {ended.returncode}: {last[0][:300]}", "tail": ended.tail}
