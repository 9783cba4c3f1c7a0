"""What ``--gpus`` says, and what that is for CUDA and for nvidia-smi (for the engine: ``container.gpus``).

Only the standard library and tfenv's own code are used, as ``rootfs_run`` does with it.
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

from tfenv.errors import NotReadyError

if TYPE_CHECKING:
    from tfenv.engine import Run

_NAME = r"0|[1-9][0-9]{0,3}|(GPU|MIG)-[0-9A-Za-z/-]+"
WORDS = (
    "auto, all, none, a number from 1 on, or a list without repeats "
    "(0,1; device=0 for one; or what nvidia-smi -L calls them)"
)


def parse(text: str) -> str | None:
    """``auto``, ``all``, ``none``, a number of GPUs, or ``device=`` and those that are named; None if wrong.

    A list has indices, or UUIDs as nvidia-smi -L shows them; also in the quotes that docker wants around
    one. One number alone is how many.
    """
    text = text.strip().strip("\"'")
    if text in ("auto", "all", "none") or re.fullmatch("[1-9][0-9]{0,3}", text):
        return text
    listed = text.removeprefix("device=")
    names = [name.strip() for name in listed.split(",")]
    # CUDA sees no GPU at all where one is named twice.
    known = all(re.fullmatch(_NAME, name) for name in names) and len({*names}) == len(names)
    return None if not known or text.isdigit() else f"device={','.join(names)}"


_COUNT = r"all|[1-9][0-9]{0,3}"
_DOCKERS = {
    "count": _COUNT,
    # Also a MIG device by its place, and one of a CDI specification.
    "device": rf"({_NAME}|all|[0-9]+:[0-9]+|[a-z0-9.-]+/[a-z0-9-]+=[\w.:-]+)",
    "capabilities": r"[a-z][a-z0-9-]*",
    "driver": r"[a-z][\w.-]*",
    "options": r"[\w.-]+(=[\w./:-]*)?",
}
_ONE = ("count", "driver")
DOCKERS = """a value of docker's, as 2, device=0, '"device=0,1"', all,capabilities=utility"""


def dockers(text: str) -> str | None:
    """A value of docker's own ``--gpus``, as it is; None if docker would not take it.

    It is a line of CSV whose fields are ``KEY=VALUE``, each key once, or how many alone.
    """
    try:
        (fields,) = csv.reader([text], strict=True)
    except (ValueError, csv.Error):
        return None
    said: dict[str, list[str]] = {}
    for field in fields:
        key, equals, value = field.partition("=")
        key, value = (key, value) if equals else ("count", field)
        if key not in _DOCKERS or key in said:
            return None
        said[key] = [value] if key in _ONE else value.split(",")
    known = all(
        re.fullmatch(_DOCKERS[key], one, re.ASCII) for key, listed in said.items() for one in listed
    ) and len({*said.get("device", ())}) == len(said.get("device", ()))
    return text if said and known and not {"count", "device"} <= said.keys() else None


def count(gpus: str) -> int | None:
    """How many GPUs ``--gpus`` gives, as of ``parse``; None where that depends on the host."""
    if gpus in ("auto", "all") or "MIG-" in gpus:  # of MIG devices CUDA takes one
        return None
    listed = names(gpus)
    return len(listed.split(",")) if listed else 0


def given(wanted: str | None) -> bool | str:
    """What a container is given, as of ``container.Spec``, of what ``runline.choose_gpus`` says."""
    return True if wanted == "all" else wanted or False


def names(gpus: bool | str) -> str | None:
    """The given GPUs as a list: ``0,1``; None for all, empty for none.

    Args:
        gpus: as of ``container.Spec``: falsy for none; True or ``all``; a number; or a list.
    """
    if not gpus or gpus == "none":
        return ""
    if gpus is True or gpus in ("all", "auto"):
        return None
    return ",".join(map(str, range(int(gpus)))) if gpus.isdigit() else gpus.removeprefix("device=")


def steering(gpus: bool | str) -> dict[str, str]:
    """The variables by which CUDA sees the given GPUs, numbered as nvidia-smi does; none for all."""
    visible = names(gpus)
    if not visible:
        return {} if visible is None else {"CUDA_VISIBLE_DEVICES": ""}
    return {"CUDA_VISIBLE_DEVICES": visible, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def smi_option(gpus: bool | str) -> list[str]:
    """The option by which nvidia-smi shows the given GPUs alone; none for all."""
    listed = names(gpus)
    return ["-i", listed] if listed else []


def there(gpus: bool | str, run: Run) -> bool | str:
    """The same GPUs by their numbers, where they are chosen; proved to be here.

    Args:
        gpus: as of ``container.Spec``. MIG devices stay as they are: nvidia-smi does not tell of one.

    Raises:
        NotReadyError: this host lacks one of them.
    """
    listed = names(gpus)
    if not listed or "MIG-" in listed:
        return gpus
    done = run(["nvidia-smi", "--query-gpu=index", "--format=csv,noheader", *smi_option(gpus)])
    wanted, found = listed.split(","), done.stdout.split()
    if done.returncode or len(found) != len(wanted) or not all(map(str.isdigit, found)):
        raise NotReadyError(
            f"this host does not have the GPUs {listed}", remedy="see which there are: nvidia-smi -L"
        )
    # In the order that was asked for, where they were named by number.
    return "device=" + ",".join(wanted if set(wanted) == set(found) else found)
