"""GPUs and driver in what nvidia-smi prints: its list (``-L``), its table, ``-q``, ``--query-gpu``."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MOST = 1 << 20  # characters; the table of a host with many processes has a hundredth of them
_LISTED = re.compile(r"GPU \d{1,3}: (?P<name>\S.{0,100}?) \(UUID: GPU-[0-9A-Za-z.-]+\)")
_MIG = re.compile(r"MIG [\w.+]+ +Device +\d{1,3}: \(UUID: MIG-[\w./-]+\)")
_OF_TABLE = re.compile(
    r"\| +\d{1,3} +(?P<name>\S.{0,60}?) +(?:On|Off|N/A|WDDM|TCC|MCDM) *\| *[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:"
    r"[0-9A-Fa-f]{2}\.[0-9A-Fa-f] .*"
)
_HEAD = re.compile(r"\| NVIDIA-SMI .*Driver Version: (?P<driver>\d{3,4}(?:\.\d{1,4}){1,2})\b.*")
_FRAME = re.compile(r"[|+].*[|+]")
_DAY = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?:[A-Z]{2,5} )?\d{4}")
_TYPED = re.compile(r"(?:\S{1,100}[$#>%]|[$#>%]) ?(?:sudo )?nvidia-smi\b.{0,200}")
_QUERIED = re.compile(
    r"(?P<name>(?:NVIDIA|Tesla|Quadro|GeForce) [^,]{1,80})(?:, (?P<driver>\d{3,4}(?:\.\d{1,4}){1,2}))?"
)
_QUERY = re.compile(r"(?:index, )?name(?:, driver_version)?")
_LOG = "NVSMI LOG"
_PRODUCT = re.compile(r"Product Name +: (?P<name>\S.{0,100})")
_DRIVER = re.compile(r"Driver Version +: (?P<driver>\d{3,4}(?:\.\d{1,4}){1,2})")
_OF_LOG = re.compile(r"[^:]{1,80}:? *|.{1,80} : .*|=+NVSMI LOG=+|GPU [0-9A-Fa-f]{4,8}:.*")


@dataclass(frozen=True)
class Seen:
    """Names of GPUs, each once, as nvidia-smi has them; version of the driver, empty if it is not said."""

    gpus: tuple[str, ...]
    driver: str = ""


def seen(text: str) -> Seen | None:
    """What a text says that nvidia-smi has printed; None where there is anything else in it, or no GPU."""
    if len(text) > _MOST:
        return None
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not _TYPED.fullmatch(line)]
    log = bool(lines) and any(_LOG in line for line in lines[:3])
    forms = (_PRODUCT, _DRIVER, _OF_LOG, _DAY) if log else _FORMS
    names: list[str] = []
    driver = ""
    for line in lines:
        match = next((match for form in forms if (match := form.fullmatch(line))), None)
        if match is None:
            return None
        said = match.groupdict()
        if name := said.get("name"):
            names.append(name.removesuffix("...").strip())
        driver = driver or said.get("driver") or ""
    return Seen(tuple(dict.fromkeys(names)), driver) if names else None


_FORMS = (_LISTED, _MIG, _OF_TABLE, _HEAD, _FRAME, _DAY, _QUERIED, _QUERY)
