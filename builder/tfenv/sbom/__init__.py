"""What is in an image: bills of materials as CycloneDX and SPDX, and licences. Pure and deterministic."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tfenv.model import Lock

from . import cyclonedx, spdx
from .bills import Evidence, of_image
from .bills import of_lock as bill_of_lock
from .model import UNKNOWN, Bill, Component, Licence

FORMATS: Mapping[str, Callable[[Bill], dict[str, Any]]] = {
    "cyclonedx": cyclonedx.document,
    "spdx": spdx.document,
}
#: What the files of a bill are called.
NAMES: Mapping[str, str] = {"cyclonedx": "sbom.cdx.json", "spdx": "sbom.spdx.json"}

__all__ = [
    "FORMATS",
    "NAMES",
    "UNKNOWN",
    "Bill",
    "Component",
    "Evidence",
    "Licence",
    "bill_of_lock",
    "documents",
    "dump",
    "of_image",
    "of_lock",
]


def of_lock(
    lock: Lock, *, format: str = "cyclonedx", evidence: Evidence = lambda _: UNKNOWN
) -> dict[str, Any]:
    """The document of what a lock gives; the same for the same lock.

    Args:
        format: ``cyclonedx`` or ``spdx``. evidence: tells licences, which a lock does not hold.
    """
    return FORMATS[format](bill_of_lock(lock, evidence))


def documents(lock: Lock) -> dict[str, str]:
    """Both documents of a lock as text, by file name."""
    return {NAMES[form]: dump(of_lock(lock, format=form)) for form in FORMATS}


def dump(document: Mapping[str, Any]) -> str:
    """The document's text."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
