"""What today's index, registry, mirror and end-of-life tables say against the locks.

``look`` asks every question once, however many cells share it, and lets the rules of ``rules.RULES``
judge the answers. What could not be asked is part of the result.
"""

from .look import look
from .model import SEVERITIES, Finding, Result, Severity, Subject, Unasked
from .probes import Offer, Probes, Refused

__all__ = [
    "SEVERITIES",
    "Finding",
    "Offer",
    "Probes",
    "Refused",
    "Result",
    "Severity",
    "Subject",
    "Unasked",
    "look",
]
