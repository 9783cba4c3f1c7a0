"""A report as JUnit XML, for continuous integration."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from tfenv.progress import clean

from .human import about, time_of
from .model import Check, Report, summary

# What XML 1.0 cannot hold, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_text(text: str) -> str:
    """The text without what XML 1.0 cannot hold, nor a terminal should get."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", clean(text))


def to_junit(report: Report) -> str:
    """The report as JUnit XML."""
    states = [check.status for check in report.checks]
    suite = ElementTree.Element(
        "testsuite",
        name=f"tfenv {report.suite}: {xml_text(report.image)}",
        tests=str(len(report.checks)),
        failures=str(states.count("fail")),
        errors="0",
        skipped=str(states.count("not-run")),
        time=f"{report.seconds:.3f}",
        timestamp=time_of(report).strftime("%Y-%m-%dT%H:%M:%S"),
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in about(report):
        if not value:
            continue
        ElementTree.SubElement(properties, "property", name=name, value=xml_text(value))
    for check in report.checks:
        case = ElementTree.SubElement(
            suite, "testcase", classname="tfenv", name=xml_text(check.name), time=f"{check.seconds:.3f}"
        )
        if check.status == "not-run":
            ElementTree.SubElement(case, "skipped", message=xml_text(summary(check)))
        elif check.status == "fail":
            failure = ElementTree.SubElement(case, "failure", message=xml_text(summary(check)))
            failure.text = xml_text(_details(check))
        elif details := _details(check):
            ElementTree.SubElement(case, "system-out").text = xml_text(details)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _details(check: Check) -> str:
    lines = []
    for finding in check.findings:
        lines.append(f"{finding.severity}: {finding.message}")
        lines += [f"  | {line}" for line in finding.evidence.splitlines()]
        if finding.remedy:
            lines.append(f"  remedy: {finding.remedy}")
    return "\n".join(lines)
