"""A difference as Markdown for a pull request: short sections open, long ones folded."""

from __future__ import annotations

from .model import Change, Difference, Section
from .telling import SIGNS, cut, gaps, grouped, summary, tally

MOST_MARKDOWN = 60_000  # characters; GitHub takes 65536 in a comment
_ROWS = 200  # of one table
_HTML = {"<": "&lt;", ">": "&gt;", "@": "&#64;", "&": "&amp;"}


def to_markdown(told: Difference) -> str:
    """For a pull request: short sections open, long ones folded, the whole bounded."""
    head = [
        f"### {_code(told.before.name)} → {_code(told.after.name)}",
        "",
        _escaped(summary(told)),
        "",
    ]
    body: list[str] = []
    used = sum(len(line) + 1 for line in head) + 2000  # room for what is said at the end
    left_out: list[str] = []
    for section in told.sections if not told.identical else ():
        if section.unknown or not section.differs:
            continue
        block = _block(section)
        if used + len(block) > MOST_MARKDOWN:
            left_out.append(section.title)
            continue
        body += [block, ""]
        used += len(block) + 1
    if left_out:
        body += [f"Left out because it is long: {_escaped(', '.join(left_out))}.", ""]
    untold = [_escaped(line.strip().removeprefix("? ")) for line in gaps(told)[2:]]
    if untold and not told.identical:
        body += ["Not known of one side, so not compared:", "", *(f"- {cut(gap)}" for gap in untold[:12]), ""]
    return "\n".join([*head, *body]).rstrip() + "\n"


def _block(section: Section) -> str:
    known = [c for c in section.changes if not c.state.startswith("unknown")]
    lines = [f"{_escaped(note)}<br>" for note in section.notes]
    if section.key == "files":
        lines += [f"- {_escaped(row)}" for row in grouped(known)] + [""]
        listed = "\n".join(f"{SIGNS[c.state]} {cut(c.name, 200)}" for c in known[:_ROWS]).replace(
            "```", "'''"
        )
        rest = f"\n... and {len(known) - _ROWS} more" if len(known) > _ROWS else ""
        lines += [f"```\n{listed}{rest}\n```"]
    else:
        lines += ["", "| | before | after |", "|---|---|---|"]
        lines += [
            f"| {_code(c.name)} | {_cell(c, after=False)} | {_cell(c, after=True)} |" for c in known[:_ROWS]
        ]
        if len(known) > _ROWS:
            lines.append(f"| ... and {len(known) - _ROWS} more | | |")
    title = f"{_escaped(section.title)}: {tally(section.changes)}"
    if section.folded or len(known) > 15:
        return f"<details><summary>{title}</summary>\n\n" + "\n".join(lines) + "\n\n</details>"
    return f"**{title}**\n\n" + "\n".join(lines)


def _cell(change: Change, *, after: bool) -> str:
    value = change.after if after else change.before
    if value:
        return _code(value)
    return "yes" if change.state == "changed" or (change.state == "added") == after else ""


def _code(text: str) -> str:
    # Inside of code nothing is read as HTML, a mention or a link; a bar would still end the cell.
    return "`" + cut(text).replace("`", "'").replace("|", "\\|") + "`"


def _escaped(text: str) -> str:
    return "".join(_HTML.get(sign, f"\\{sign}" if sign in "\\`*_[]#|" else sign) for sign in cut(text, 1500))
