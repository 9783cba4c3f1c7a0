"""A difference as text and as JSON; what matters first, long lists folded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tfenv.progress import clean

from .filelist import group, is_noise
from .model import Change, Description, Difference, Section

MOST_JSON = 100_000  # changes of one section
_SHOWN = 25  # changes of one section in text
_GROUPS = 12
_VALUE = 300  # characters
#: What stands before a change.
SIGNS = {"added": "+", "removed": "-", "changed": "~", "unknown before": "?", "unknown after": "?"}


def summary(told: Difference) -> str:
    """What matters most, in one line."""
    if told.identical:
        return "identical: the same digest"
    if not told.differs:
        untold = [section.title for section in told.sections if _has_gap(section)]
        return "the same in all that is known of both" + (
            f"; not compared: {', '.join(untold)}" if untold else ""
        )
    leading = [s for s in told.sections if s.differs and s.key in ("stack", "python", "base")]
    said = [
        f"{c.name} {c.before or 'none'} -> {c.after or 'none'}"
        for section in leading
        for c in section.changes[:4]
        if not c.state.startswith("unknown")
    ]
    rest = [
        f"{section.title}: {count}"
        for section in told.sections
        if section not in leading and (count := _count(section))
    ]
    return "; ".join([*said, *rest])


def _count(section: Section) -> int:
    return sum(not c.state.startswith("unknown") for c in section.changes)


def _has_gap(section: Section) -> bool:
    return bool(section.unknown) or any(c.state.startswith("unknown") for c in section.changes)


def to_text(told: Difference, *, full: bool = False) -> str:
    """For a terminal: sections that differ, then what is not known, in a line each."""
    lines = [f"A  {_side(told.before)}", f"B  {_side(told.after)}", "", summary(told)]
    if told.identical:
        return "\n".join(lines)
    for section in told.sections:
        if section.unknown or not (section.differs or (section.notes and told.differs)):
            continue
        lines += ["", f"{section.title}" + (f" ({tally(section.changes)})" if section.changes else "")]
        lines += [f"  {note}" for note in section.notes]
        known = [c for c in section.changes if not c.state.startswith("unknown")]
        if section.key == "files" and not full:
            lines += [f"  {row}" for row in grouped(known)]
        else:
            shown = known if full else known[:_SHOWN]
            width = min(max((len(c.name) for c in shown), default=0), 40)
            lines += [f"  {SIGNS[c.state]} {cut(c.name):<{width}}  {_values(c)}".rstrip() for c in shown]
            lines += _more(len(known) - len(shown))
    lines += gaps(told)
    lines += ["", *(f"note: {note}" for note in _notes(told))] if _notes(told) else []
    return "\n".join(lines)


def _more(left: int) -> list[str]:
    return [f"  ... and {left} more (--full shows all)"] if left > 0 else []


def _notes(told: Difference) -> list[str]:
    return [*told.before.notes, *told.after.notes]


def gaps(told: Difference) -> list[str]:
    """What one side does not tell, never called removed."""
    lines = []
    for section in told.sections:
        if section.unknown:
            lines.append(f"  ? {section.title}: {section.unknown}")
            continue
        for state, side in (("unknown before", told.before), ("unknown after", told.after)):
            names = [c.name for c in section.changes if c.state == state]
            if names:
                few = ", ".join(cut(name, 60) for name in names[:5]) + (", ..." if len(names) > 5 else "")
                lines.append(f"  ? {section.title}: {side.name} does not tell of {len(names)}: {few}")
    return ["", "Not known of one side, so not compared", *lines] if lines else []


def _side(side: Description) -> str:
    what = "inputs by hash" if side.kind == "lock" else side.kind
    return f"{side.name} ({what}{', ' + side.digest if side.digest else ''})"


def tally(changes: Iterable[Change]) -> str:
    """How many changed, were added, were removed, in words."""
    counts = Counter(change.state for change in changes if not change.state.startswith("unknown"))
    return ", ".join(f"{counts[state]} {state}" for state in ("changed", "added", "removed") if counts[state])


def _values(change: Change) -> str:
    if change.state == "changed":
        return f"{cut(change.before)} -> {cut(change.after)}"
    return cut(change.after or change.before)


def cut(text: str, most: int = _VALUE) -> str:
    """A value on one line, of ``most`` characters, without what drives a terminal."""
    plain = " ".join(clean(text).split())
    return plain if len(plain) <= most else f"{plain[: most - 3]}..."


def grouped(changes: list[Change]) -> list[str]:
    """Files by what they belong to, the most changed first; what every build moves in one last line."""
    groups: dict[str, list[Change]] = {}
    for change in changes:
        groups.setdefault("" if is_noise(change.name) else group(change.name), []).append(change)
    noise = groups.pop("", [])
    ranked = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    rows = []
    for name, found in ranked[:_GROUPS]:
        few = ", ".join(cut(c.name, 80) for c in found[:3]) + (", ..." if len(found) > 3 else "")
        rows.append(f"{cut(name, 60)}: {tally(found)}" + (f" ({few})" if len(found) <= 3 else ""))
    if len(ranked) > _GROUPS:
        left = sum(len(found) for _, found in ranked[_GROUPS:])
        rows.append(f"... and {left} files in {len(ranked) - _GROUPS} other places (--full lists all)")
    if noise:
        rows.append(f"noise (byte code, caches, logs): {tally(noise)}")
    return rows


def to_json(told: Difference) -> dict[str, Any]:
    """For programs; sections in the order of their rank."""
    return {
        "format": 1,
        "identical": told.identical,
        "differs": told.differs,
        "summary": summary(told),
        "before": _side_json(told.before),
        "after": _side_json(told.after),
        "sections": [_section_json(section) for section in told.sections],
        "notes": _notes(told),
    }


def _side_json(side: Description) -> dict[str, Any]:
    layers = side.layers
    return {
        "name": side.name,
        "kind": side.kind,
        "digest": side.digest,
        "layers": None
        if layers is None
        else [{"id": of.id, "stored": of.stored, "files": of.files, "made_by": of.made_by} for of in layers],
    }


def _section_json(section: Section) -> dict[str, Any]:
    changes = [
        {"name": c.name, "state": c.state, "before": c.before, "after": c.after} for c in section.changes
    ]
    return {
        "key": section.key,
        "title": section.title,
        "differs": section.differs,
        "changes": changes[:MOST_JSON],
        "left_out": max(len(changes) - MOST_JSON, 0),
        "notes": list(section.notes),
        "unknown": section.unknown,
    }
