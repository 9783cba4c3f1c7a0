"""What every check is given."""

from __future__ import annotations

from dataclasses import dataclass, field

from .declared import Declared
from .gpu import Gpu


@dataclass(frozen=True)
class Context:
    """The declaration of the image, and what the driver says (None where nobody asked)."""

    declared: Declared = field(default_factory=Declared)
    gpu: Gpu = field(default_factory=Gpu)
