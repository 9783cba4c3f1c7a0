"""The words and signs of the page: what each state is called. A colour never stands alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .evidence import Kind


@dataclass(frozen=True, kw_only=True)
class Sign:
    """A sign, its words and the class that gives its colour."""

    colour: str
    sign: str
    words: str


VERIFIED = Sign(colour="green", sign="✔", words="verified")
LIMITED = Sign(colour="amber", sign="▲", words="with a limit")
REFUSED = Sign(colour="red", sign="✖", words="refused")

STANDINGS: Mapping[Kind, Sign] = {
    "verified": VERIFIED,
    "failed": Sign(colour="red", sign="✖", words="failed a check"),
    "checked": Sign(colour="grey", sign="○", words="built, no GPU yet"),
    "built": Sign(colour="grey", sign="○", words="built, not verified"),
    "locked": Sign(colour="grey", sign="○", words="locked, not built"),
    "partly": Sign(colour="grey", sign="○", words="locked, but for its base"),
    "open": Sign(colour="grey", sign="○", words="not locked yet"),
}

#: What a GPU and a driver do with a cell, by state; the page's script shows the same ones.
ANSWERS: Mapping[str, Sign] = {
    "proven": Sign(colour="green", sign="✔", words="runs, verified"),
    "runs": Sign(colour="grey", sign="●", words="runs"),
    "limited": Sign(colour="amber", sign="▲", words="runs with a limit"),
    "refused": Sign(colour="red", sign="✖", words="does not run"),
    "unknown": Sign(colour="grey", sign="?", words="not known"),
    "failed": Sign(colour="red", sign="✖", words="failed a check"),
}

LEGEND: tuple[tuple[Sign, str], ...] = (
    (
        VERIFIED,
        "Every check of the suite that these GPUs allow passed, with the image whose digest is recorded. The "
        "GPUs, the driver and the day are named, and what was not run: one GPU does not prove several.",
    ),
    (
        Sign(colour="grey", sign="○", words="builds"),
        "A digest is recorded, or only the lock; it says which. Nobody has verified it on a GPU.",
    ),
    (
        LIMITED,
        "It works, but not fully: kernels are compiled at first use, XLA cannot write for the GPU, or "
        "several GPUs need another way to talk to each other. It says which.",
    ),
    (REFUSED, "It does not exist or does not run, with the reason."),
)
