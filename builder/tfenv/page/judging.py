"""What the compatibility rules say of a cell, as the page's answers. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING

from tfenv.errors import UsageError
from tfenv.facts import Compiled, floors

from .answers import Answer, Judge, State
from .gpus import Gpu

if TYPE_CHECKING:
    from tfenv.compat import Verdict
    from tfenv.model import Cell

Lookup = Callable[[str], Compiled]
#: Far enough beyond a GPU's last driver branch to meet the first that does without it.
_LATER_BRANCHES = 10


def judge(compiled: Lookup) -> Judge:
    """The judge that asks the rules; cells with the same release and libraries are asked about once.

    Args:
        compiled: what a release was compiled for; UsageError where that is not known.
    """
    from tfenv import compat

    @cache
    def runs(
        tensorflow: str, cuda: str, cudnn: str, gpu: tuple[str, str, str] | None, driver: str | None
    ) -> Answer:
        try:
            facts = compiled(tensorflow)
        except UsageError as error:
            return Answer(state="unknown", sentences=(_sentence(error.message),))
        capability, kind, host = gpu or (None, "", "")
        verdict = compat.runs(facts, cuda, cudnn, capability, driver, kind, host)
        return answer(verdict, capability, driver)

    def ask(cell: Cell, gpu: Gpu | None, driver: str | None) -> Answer:
        group = (gpu.compute_capability, gpu.kind, gpu.host) if gpu else None
        return runs(cell.row.tensorflow, cell.cuda_set.cuda, cell.cuda_set.cudnn, group, driver)

    return ask


def answer(verdict: Verdict, capability: str | None, driver: str | None) -> Answer:
    """A verdict as the page says it; what is worth knowing and limits nothing is said of the release.

    Args:
        capability, driver: those that were asked about. They stand for many, so *this GPU* and *this
            driver* are said instead.
    """
    state: State = "limited" if verdict.outcome == "limit" else verdict.outcome
    findings = [
        of
        for of in verdict.findings
        if of.severity == "refuse" or (state != "refused" and of.severity != "warn")
    ]
    return Answer(
        state=state,
        sentences=tuple(
            dict.fromkeys(_sentence(_in_general(of.message, capability, driver)) for of in findings)
        ),
        remedies=tuple(dict.fromkeys(of.remedy for of in findings if of.remedy)),
    )


def _in_general(message: str, capability: str | None, driver: str | None) -> str:
    from tfenv import gpus

    gpu = gpus.of_capability(capability) if capability else None
    if gpu:
        who = f"{gpu.architecture}, compute capability {gpu.capability}"
        message = message.replace(f"{gpu.target} ({who})", "this GPU").replace(who, "this GPU")
        message = message.replace(f"is the last for {gpu.architecture}", "is the last that does")
    return message.replace(f"the driver {driver} ", "this driver ") if driver else message


def drivers(cells: Iterable[Cell], compiled: Lookup, gpus: Iterable[Gpu]) -> frozenset[str]:
    """Drivers at which an answer may change: floors, and the first and last ones of GPUs."""
    from tfenv import gpus as known

    found = set()
    for cell in cells:
        try:
            found |= {floor.driver for floor in floors(compiled(cell.row.tensorflow), cell.cuda_set.cuda)}
        except UsageError:
            continue  # the rules say so themselves
    for gpu in gpus:
        of = known.of_capability(gpu.compute_capability)
        if of and of.first_driver:
            found.add(of.first_driver)
        if of and of.last_driver:
            found |= {str(int(of.last_driver) + later) for later in range(1, _LATER_BRANCHES + 1)}
    return frozenset(found)


def about(compiled: Lookup) -> Callable[[str], tuple[str, ...]]:
    """What there is to say of a release."""

    def told(tensorflow: str) -> tuple[str, ...]:
        try:
            of = compiled(tensorflow)
        except UsageError as error:
            return (_sentence(error.message),)
        said = [f"Compiled for CUDA {of.cuda} and cuDNN {of.cudnn}."]
        if of.nccl and of.nccl_how:
            how = "linked in" if of.nccl_how == "linked" else "loaded from outside"
            said.append(f"NCCL {of.nccl} is {how}.")
        if of.sass:
            said.append(f"Machine code for compute capability {', '.join(of.sass)}.")
        if of.yanked:
            said.append(_sentence(f"the package index has it as yanked: {of.yanked}"))
        return tuple(said)

    return told


def _sentence(text: str) -> str:
    text = text.strip()
    first = text.split(" ")[0]
    if first.islower():  # and not cuDNN
        text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
