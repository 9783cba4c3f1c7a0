"""A report as Markdown, for people."""

from __future__ import annotations

from tfenv.progress import clean

from .human import about, time_of
from .model import Check, Finding, Report, summary


def _cell(text: str) -> str:
    return " ".join(clean(text).split()).replace("|", "\\|").replace("<", "&lt;")


def to_markdown(report: Report) -> str:
    """The report for people."""
    lines = [f"# {_cell(report.image)}: {_cell(report.words)}", ""]
    lines += [f"- {name}: {_cell(value)}" for name, value in about(report) if value]
    lines += [f"- date: {time_of(report):%Y-%m-%d}", ""]
    lines += ["| check | result | seconds | |", "|---|---|---:|---|"]
    for check in report.checks:
        result = "**fail**" if check.status == "fail" else check.status.replace("-", " ")
        said = check.reason if check.status == "not-run" else summary(check)
        lines.append(f"| {_cell(check.name)} | {result} | {check.seconds:.1f} | {_cell(said)} |")
    for check in report.checks:
        told = [f for f in check.findings if f.severity != "info"]
        if told:
            lines += ["", f"## {_cell(check.name)}"]
        for finding in told:
            lines += ["", f"**{finding.severity}**: {_cell(finding.message)}"]
            if finding.evidence:
                lines += ["", *(f"    {line}" for line in clean(finding.evidence).splitlines())]
            if finding.remedy:
                lines += ["", f"Remedy: {_cell(finding.remedy)}"]
    notes = [(check, f) for check in report.checks for f in check.findings if f.severity == "info"]
    if notes:
        lines += ["", "## Notes", "", *(_note(check, found) for check, found in notes)]
    return "\n".join(lines) + "\n"


def _note(check: Check, found: Finding) -> str:
    """What is worth knowing, on one line: of longer evidence only that there is some."""
    proof = found.evidence.splitlines()
    told = (
        f" ({_cell(proof[0])})" if len(proof) == 1 else f" ({len(proof)} lines in the JSON)" if proof else ""
    )
    return f"- {_cell(check.name)}: {_cell(found.message)}{told}{_arrow(found)}"


def _arrow(found: Finding) -> str:
    return f" → {_cell(found.remedy)}" if found.remedy else ""
