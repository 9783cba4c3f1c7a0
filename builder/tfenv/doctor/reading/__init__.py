"""What an evidence says, as values: a text by name, missing where it is not known. One table of probes.

Yes and no are the texts ``yes`` and ``no``. A probe that stumbles over what it reads gives nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tfenv.doctor.evidence import Evidence

from . import bus, driver, engine, limits, machine, network, nodes, smi, toolkit
from .phrases import phrases

_TEXT, _LINE = 300_000, 1000  # characters
Values = Mapping[str, str]
Probe = Callable[[Evidence], dict[str, str]]

PROBES: tuple[Probe, ...] = (
    machine.read,
    bus.read,
    driver.read,
    nodes.read,
    smi.read,
    engine.read,
    toolkit.read,
    limits.read,
    network.read,
)


def values(evidence: Evidence) -> dict[str, str]:
    """All values, and what follows from several of them."""
    found: dict[str, str] = {}
    evidence = tame(evidence)
    for probe in PROBES:
        try:
            found.update({name: value for name, value in probe(evidence).items() if value})
        except Exception:  # of a recording that somebody made up
            found["stumbled"] = probe.__module__.rpartition(".")[2]
    found.update(_together(found))
    found.update(_ended(found.get("driver_branch", ""), evidence.recorded))
    return {**found, **phrases(found)}


def tame(evidence: Evidence) -> Evidence:
    """The evidence with texts of a size that no pattern takes long on, whoever wrote them."""
    return replace(
        evidence,
        env={name: text[:2000] for name, text in evidence.env.items()},
        files={path: text and _tame(text) for path, text in evidence.files.items()},
        commands={
            line: replace(ran, out=_tame(ran.out), err=_tame(ran.err))
            for line, ran in evidence.commands.items()
        },
    )


def _tame(text: str) -> str:
    if text.startswith("{"):  # JSON, which is parsed
        return text
    if len(text) > _TEXT and not text.lstrip().startswith("<"):
        text = text[-_TEXT:]
    return "\n".join(line[:_LINE] for line in text.split("\n"))


def _ended(branch: str, day: str) -> dict[str, str]:
    """The last day of the driver's branch, where it was over on the day of the recording."""
    from datetime import date

    from tfenv import eol

    try:
        last = eol.ended("driver", branch, date.fromisoformat(day)) if branch else None
    except ValueError:
        return {}
    return {"branch_ended": str(last)} if last else {}


def _together(of: Values) -> dict[str, str]:
    """Values that need those of several probes."""
    gpus = of.get("smi_gpus") or of.get("proc_gpus") or of.get("pci_gpus") or ""
    if of.get("wsl") == "yes":
        gpus = of.get("smi_gpus", "")
    there = "yes" if of.get("dxg") == "yes" or gpus not in ("", "0") else ""
    known_not = of.get("pci_gpus") == "0" and of.get("wsl") != "yes"
    version = of.get("smi_driver") or of.get("module_version") or ""
    return {
        name: value
        for name, value in {
            "gpus": gpus,
            "gpu_here": there or ("no" if known_not else ""),
            "driver_version": version,
            "driver_branch": version.split(".")[0],
        }.items()
        if value
    }
