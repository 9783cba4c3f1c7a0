"""A diagnosis as text for people and as data for programs.

Lines of the text are quoted without anything that drives a terminal: ``reading`` has taken that out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from .diagnose import Cause, Diagnosis, Fit
from .layers import LAYERS
from .lines import Line

_WIDE = 240  # characters of a quoted line
_CAUSES = 4
_UNKNOWN = 3  # lines that look like errors, the last ones
_TOLD = ("tensorflow", "python", "driver", "driver_cuda", "gpu", "sm", "tf_cuda", "tf_cudnn", "cudnn_package")
_MORE = (
    "  -> give the whole output, what goes to stderr too (2>&1), with the lines before the error."
    " TF_CPP_MAX_VLOG_LEVEL=1 and NCCL_DEBUG=INFO make TensorFlow and NCCL say more,"
    " --progress=plain a build; tfenv doctor looks at the host."
)
_LOGIN = re.compile(r"(://)[^/@\s'\"]{1,300}@")
_SECRET = re.compile(
    r"(?i)((?:token|secret|passw(?:or)?d|api_?key|access_?key|credential)s?[\w-]{0,20}[\"']?[=:]\s?[\"']?)[^\s\"',;]{3,300}"
)
NO_RULE = "no rule fits: the cause of this is not known"


def as_data(of: Diagnosis) -> dict[str, Any]:
    """The answer for ``--json``: the leading cause on top, all of them under ``causes``."""
    lead = of.causes[0].fit if of.causes else None
    return {
        "outcome": of.outcome,
        "code": lead.rule.name if lead else None,
        "layer": lead.rule.layer if lead else None,
        "confidence": lead.rule.confidence if lead else None,
        "causes": [
            {**_fit(cause.fit), "follows": [_brief(fit) for fit in cause.follows]} for cause in of.causes
        ],
        "noise": [{**_brief(fit), "lines": sum(line.times for line in fit.lines)} for fit in of.noise],
        "unexplained": [_line(line) for line in of.unexplained[-_UNKNOWN:]],
        "known": {name: of.values[name] for name in _TOLD if of.values.get(name)},
        "lines": of.lines,
    }


def as_text(of: Diagnosis, *, limit: int = _CAUSES) -> str:
    """The answer for people: the leading cause first, then others, then what is only noise."""
    parts: list[str] = []
    for number, cause in enumerate(of.causes[:limit]):
        parts += _told(cause, leading=number == 0)
    if len(of.causes) > limit:
        names = ", ".join(cause.fit.rule.name for cause in of.causes[limit:])
        parts.append(f"and less likely: {names}")
    if not of.causes:
        parts += _nothing(of)
    if of.noise:
        seen = sum(line.times for fit in of.noise for line in fit.lines)
        parts.append(f"harmless, everybody sees it ({seen} line{'s' * (seen != 1)}):")
        parts += [f"  {fit.rule.name}: {fit.title}" for fit in of.noise]
    if of.causes and of.unexplained:
        parts.append("also there, and not known to any rule:")
        parts += _quoted(of.unexplained[-_UNKNOWN:])
    return "\n".join(parts)


def in_short(of: Diagnosis) -> str:
    """The leading cause in two lines and its remedy, for a command that failed; empty if none is known."""
    if not of.causes or not of.causes[0].fit.lines:
        return ""
    fit = of.causes[0].fit
    return hidden(
        f"tfenv: {_confidence(fit)} cause: {fit.title} ({fit.rule.name})\n"
        f"  because of: {_cut(fit.lines[0].text)}\n"
        f"  -> {fit.remedy}"
    )


def _told(cause: Cause, *, leading: bool) -> list[str]:
    fit = cause.fit
    head = "cause" if leading else "also"
    told = [
        f"{head}: {fit.title}",
        f"  {fit.rule.name}; layer: {fit.rule.layer} ({LAYERS[fit.rule.layer]}); {_confidence(fit)}",
        f"  {hidden(fit.cause)}",
        "  decided by:",
        *_quoted(fit.lines),
        f"  -> {hidden(fit.remedy)}",
        f"  known from: {fit.rule.link}",
    ]
    if cause.follows:
        told.append("  what follows from it:")
        told += [
            f"    {other.rule.name}: {_cut(other.lines[0].text) if other.lines else other.title}"
            for other in cause.follows
        ]
    return told


def _nothing(of: Diagnosis) -> list[str]:
    if of.outcome == "info":
        return ["nothing is wrong in this text: what looks like it is harmless"]
    if not of.unexplained:
        return ["no rule fits, and no line looks like an error", _MORE]
    return [NO_RULE, "  lines that look like errors:", *_quoted(of.unexplained[-_UNKNOWN:]), _MORE]


def _confidence(fit: Fit) -> str:
    return fit.rule.confidence


def _quoted(lines: Iterable[Line]) -> list[str]:
    return [
        f"    line {line.number}: {_cut(line.text)}{f' ({line.times} times)' * (line.times > 1)}"
        for line in lines
    ]


def _cut(text: str) -> str:
    text = hidden(text)
    return text if len(text) <= _WIDE else f"{text[: _WIDE - 3]}..."


def hidden(text: str) -> str:
    """A text without the passwords in its addresses and the values of what is called a token or a key."""
    return _SECRET.sub(r"\1***", _LOGIN.sub(r"\1***@", text))


def _fit(fit: Fit) -> dict[str, Any]:
    return {
        **_brief(fit),
        "layer": fit.rule.layer,
        "confidence": fit.rule.confidence,
        "outcome": fit.rule.outcome,
        "effect": fit.rule.effect,
        "cause": hidden(fit.cause),
        "remedy": hidden(fit.remedy),
        "source": fit.rule.link,
        "evidence": [_line(line) for line in fit.lines],
    }


def _brief(fit: Fit) -> dict[str, Any]:
    return {"code": fit.rule.name, "rule": fit.rule.id, "title": fit.title}


def _line(line: Line) -> dict[str, Any]:
    return {"line": line.number, "text": _cut(line.text), "times": line.times}
