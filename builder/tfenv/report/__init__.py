"""A report: the verdicts of one image digest on one host, and its three written forms.

CTRF JSON (https://ctrf.io) is the one that is read back; JUnit XML and Markdown are for others.
What was not run is *skipped* with its reason in all of them, and a report that holds such a check
never says *passed* of it.
"""

from .ctrf import from_ctrf, to_ctrf
from .human import ran_by
from .junit import to_junit, xml_text
from .markdown import to_markdown
from .model import (
    EXIT_CODES,
    LATEST,
    Check,
    Finding,
    Host,
    Report,
    Severity,
    Status,
    Verdict,
    failures,
    key,
    summary,
)
from .storage import CTRF, JUNIT, MARKDOWN, WRITERS, find, read, require_room, write

__all__ = [
    "CTRF",
    "EXIT_CODES",
    "JUNIT",
    "LATEST",
    "MARKDOWN",
    "WRITERS",
    "Check",
    "Finding",
    "Host",
    "Report",
    "Severity",
    "Status",
    "Verdict",
    "failures",
    "find",
    "from_ctrf",
    "key",
    "ran_by",
    "read",
    "require_room",
    "summary",
    "to_ctrf",
    "to_junit",
    "to_markdown",
    "write",
    "xml_text",
]
