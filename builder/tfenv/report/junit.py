"""A report as JUnit XML, for continuous integration."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from tfenv.progress import clean

from .human import about, time_of
from .model import Check, Report, summary

# What XML 1.0 cannot hold, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _xml(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", clean(text))


def to_junit(report: Report) -> str:
    """The report as JUnit XML."""
    states = [check.status for check in report.checks]
    suite = ElementTree.Element(
        "testsuite",
        name=f"tfenv {report.suite}: {_xml(report.image)}",
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
        ElementTree.SubElement(properties, "property", name=name, value=_xml(value))
    for check in report.checks:
        case = ElementTree.SubElement(
            suite, "testcase", classname="tfenv", name=_xml(check.name), time=f"{check.seconds:.3f}"
        )
        if check.status == "not-run":
            ElementTree.SubElement(case, "skipped", message=_xml(summary(check)))
        elif check.status == "fail":
            failure = ElementTree.SubElement(case, "failure", message=_xml(summary(check)))
            failure.text = _xml(_details(check))
        elif details := _details(check):
            ElementTree.SubElement(case, "system-out").text = _xml(details)
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
