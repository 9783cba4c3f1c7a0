"""A report as Markdown, for people."""

from __future__ import annotations

from tfenv.progress import clean

from .human import about, time_of
from .model import Report, summary


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
    return "\n".join(lines) + "\n"
