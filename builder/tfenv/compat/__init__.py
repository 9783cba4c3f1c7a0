"""The truth about combinations: which TensorFlow runs with which libraries, Python, GPU and driver."""

from .model import Finding, Query, Verdict
from .runs import runs
from .serving import differs, why_not_served
from .table import judge, known

__all__ = ["Finding", "Query", "Verdict", "differs", "judge", "known", "runs", "why_not_served"]
