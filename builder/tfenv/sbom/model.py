"""What is in an image and under which licence: frozen values that every format is made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["deb", "wheel", "source", "python", "image", "system"]
#: Where a component was found, of the two that may tell.
Where = Literal["both", "lock", "image"]


@dataclass(frozen=True)
class Licence:
    """What a component says of its licence.

    Args:
        expression: of SPDX, where what is said can be put so; names that SPDX does not have are LicenseRef-.
        names: as they are written there. source: where that is.
        file: the licence's own text, relative to where the component is installed; empty if there is none.
        proprietary: it says that it is not free.
    """

    expression: str = ""
    names: tuple[str, ...] = ()
    source: str = ""
    file: str = ""
    proprietary: bool = False

    @property
    def known(self) -> bool:
        """Whether anything is said."""
        return bool(self.expression or self.names)

    @property
    def words(self) -> str:
        """For people; what is unknown is said to be."""
        return self.expression or ", ".join(self.names) or "unknown"


UNKNOWN = Licence()


@dataclass(frozen=True, kw_only=True)
class Component:
    """One part of an image.

    Args:
        purl: package URL, https://github.com/package-url/purl-spec. sha256: hex, of the file it came in.
        filename: that file. architecture: Debian's. layer: where it is installed, of a wheel.
        in_image: false of the installer, which makes the image and does not stay.
        where: who names it.
    """

    kind: Kind
    name: str
    version: str
    purl: str
    sha256: str = ""
    filename: str = ""
    architecture: str = ""
    layer: str = ""
    in_image: bool = True
    licence: Licence = UNKNOWN
    where: Where = "lock"

    @property
    def key(self) -> str:
        """What tells it from all others of its bill."""
        return f"{self.kind}:{self.name}@{self.version}" + ("" if self.in_image else ":tool")


@dataclass(frozen=True, kw_only=True)
class Bill:
    """All parts of an image.

    Args:
        subject: the cell or the image; version: its lock or digest.
        made_from: ``lock`` or ``image``. created: Unix seconds. tool: version of tfenv.
        gaps: what is in the image and not listed, in words.
        differences: where the lock and the image do not agree, in words.
    """

    subject: str
    version: str
    made_from: str
    created: int
    tool: str
    components: tuple[Component, ...]
    gaps: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
