"""GPU names as people and nvidia-smi write them -> compute capability. An unknown name stays unknown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from . import factfiles
from .versions import order


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """What is known of a GPU, or of all of one compute capability.

    Args:
        name: as it was asked for; capability: e.g. ``9.0``.
        kind: ``data-centre``, ``workstation``, ``geforce``; empty where only the capability is known.
        first_cuda: first CUDA that can compile for it; last_cuda: the last; empty for no end.
        first_driver, last_driver: a driver version, a driver branch such as ``580``; empty for no bound.
        xla_cuda: the lowest CUDA that TensorFlow must be compiled for so that XLA can address it.
        host: the platform of the hosts that it is in, where its own CPU decides that (``linux/arm64``).
    """

    name: str
    capability: str
    architecture: str
    kind: str = ""
    first_cuda: str = ""
    last_cuda: str = ""
    first_driver: str = ""
    last_driver: str = ""
    xla_cuda: str = ""
    host: str = ""

    @property
    def target(self) -> str:
        """The compiler's name of it, e.g. ``sm_90``."""
        return "sm_" + self.capability.replace(".", "")

    @property
    def in_words(self) -> str:
        """E.g. ``H100, compute capability 9.0``; the architecture where no product was named."""
        named = self.name if self.name != self.capability else self.architecture
        return f"{named}, compute capability {self.capability}"


#: Words of a name that do not tell one chip from another.
_TAKEN_OFF = re.compile(
    r"\b(nvidia|geforce|tesla|grid|corporation|graphics|card|gpu|gpus|laptop|notebook|mobile|generation|edition"
    r"|server|workstation|founders|max q|with|design|pcie|pci|sxm\d?|hbm\d?e?|nvl|mig.*|\d+ ?gb|\d+ ?g"
    r"|\d+[qcab]|superchip|dgx(?! spark)|hgx)\b"
)
_LISTED = re.compile(r"\s*GPU \d{1,3}: (?P<name>\S.*?)(?: \(UUID: [^()]*\))?\s*", re.IGNORECASE)
#: What people leave out when they say only a number.
_SERIES = ("rtx", "gtx", "gt", "quadro", "quadro rtx", "rtx pro")
_CAPABILITY = re.compile(
    r"(?:sm|compute)[_ -]?(?P<packed>\d{2,3})[af]?"
    r"|(?:cc|compute capability|capability)?\s*(?P<dotted>\d{1,2}\.\d)"
)


def find(name: str) -> Gpu | None:
    """The GPU that a name means, or a compute capability (``sm_120``, ``12.0``); None if that is not known.

    A name that could mean GPUs of different compute capabilities is not known: see ``ambiguous``.
    """
    capability = _as_capability(name)
    if capability:
        return of_capability(capability, name)
    found = _names().get(_bare(name))
    return of_capability(found[0], name, found[1], found[2]) if found else None


def of_capability(capability: str, name: str = "", kind: str = "", host: str | None = None) -> Gpu | None:
    """What is known of a compute capability; None if nothing is.

    Args:
        host: of the GPU that is meant; None for that of all which are of this capability, if they have one.
    """
    row = _data()["capabilities"]["rows"].get(capability)
    if not row:
        return None
    if host is None:
        hosts = {of.get("host", "") for of in _data()["names"]["rows"] if of["capability"] == capability}
        host = hosts.pop() if len(hosts) == 1 else ""
    return Gpu(name=name or capability, capability=capability, kind=kind, host=host, **row)


def ambiguous(name: str) -> tuple[str, ...]:
    """The GPUs that an ambiguous name could mean; empty if it is not one."""
    return tuple(_data()["ambiguous"]["rows"].get(_bare(name), ()))


def near(name: str) -> tuple[str, ...]:
    """Known names that look like an unknown one."""
    import difflib

    bare = _bare(name)
    numbered = [known for known in (f"{series} {bare}" for series in _SERIES) if known in _names()]
    alike = numbered or difflib.get_close_matches(bare, list(_names()), n=4, cutoff=0.6)
    return tuple(map(_display, alike))


def all_capabilities() -> tuple[tuple[Gpu, tuple[str, ...]], ...]:
    """Every known compute capability, lowest first, with the names of its GPUs."""
    rows = _data()["names"]["rows"]
    result = []
    for capability in sorted(_data()["capabilities"]["rows"], key=order):
        gpu = of_capability(capability)
        names = (name for row in rows if row["capability"] == capability for name in row["names"])
        if gpu:
            result.append((gpu, tuple(map(_display, names))))
    return tuple(result)


def host_source() -> str:
    """How it is known which GPUs are in hosts of one platform only."""
    return str(_data()["names"]["host_source"])


def source() -> str:
    """Where names and compute capabilities come from."""
    return str(_data()["source"])


def _as_capability(name: str) -> str:
    match = _CAPABILITY.fullmatch(name.strip().lower())
    if not match:
        return ""
    packed = match["packed"]
    return match["dotted"] or f"{packed[:-1]}.{packed[-1]}"


def as_named(name: str) -> str:
    """A GPU's name without what ``nvidia-smi -L`` puts around it: its number and its UUID."""
    found = _LISTED.fullmatch(name)
    return found["name"] if found else name


def _bare(name: str) -> str:
    text = re.sub(r"\((r|tm|c)\)|[®™]", " ", as_named(name).lower())
    text = re.sub(r"[^a-z0-9.]+", " ", text)
    text = re.sub(r"\b(rtx|gtx|gt|titan|quadro)(?=[a-z]?\d)", r"\1 ", text)
    text = re.sub(r"(?<=\d)(ti|super)\b", r" \1", text)
    text = " ".join(_TAKEN_OFF.sub(" ", text).split())
    text = re.sub(r"^quadro (rtx )?(a\d+|t\d+)$", r"\2", text)
    return re.sub(r"^rtx (a\d+)$", r"\1", text)  # RTX A6000, and A6000 for short


def _display(name: str) -> str:
    """``rtx 4070 ti super`` -> ``RTX 4070 Ti Super``, ``gb200`` -> ``GB200``."""
    return " ".join(
        word.upper()
        if re.search(r"\d", word) or (len(word) <= 4 and word not in ("ada", "ti", "xp"))
        else word.capitalize()
        for word in name.split()
    )


@cache
def _names() -> dict[str, tuple[str, str, str]]:
    return {
        name: (row["capability"], row["kind"], row.get("host", ""))
        for row in _data()["names"]["rows"]
        for name in row["names"]
    }


def _data() -> Any:
    return factfiles.read("gpus")
