"""Facts of releases for tests, each as its wheel has it; independent of what the committed file holds."""

from __future__ import annotations

from datetime import date
from typing import Any

from tfenv.compat.subject import Known
from tfenv.errors import UsageError
from tfenv.facts import Compiled, Ptx, Unusable

_ELEMENT_WISE = "the element-wise kernels that MLIR generates"
_OLD = ("3.5", "5.0", "6.0", "7.0", "7.5")
_NEW = ("6.0", "7.0", "8.0", "8.9")


_SM_90A = Unusable(since="10.0", what=_ELEMENT_WISE, why="their PTX is for sm_90a alone")
_NO_PTX = (Unusable(since="9.0", what=_ELEMENT_WISE, why="they have no PTX"),)


def _ptx(*of: tuple[str, str, str] | tuple[str, str, str, str]) -> tuple[Ptx, ...]:
    return tuple(Ptx(since=p[0], isa=p[1], what=p[2], until=p[3] if len(p) > 3 else None) for p in of)


def _one(
    release: str, pythons: str, cuda: str, cudnn: str, sass: tuple[str, ...], ptx: Any, **more: Any
) -> Compiled:
    values: dict[str, Any] = {
        "tensorflow": release,
        "released": "2024-01-01T00:00:00Z",
        "pythons": tuple(pythons.split()),
        "cuda": cuda,
        "cudnn": cudnn,
        "nccl": "2.8.3",
        "nccl_how": "linked",
        "sass": sass,
        "ptx": ptx,
        "unusable": () if ptx != _STUCK else (_SM_90A,),
        "source": {"cuda": "wheel headers", "sass": "fatbin headers"},
    }
    return Compiled(**{**values, **more})


_OTHER_70 = _ptx(("9.0", "7.0", "every other kernel"))
_EVERY_72 = _ptx(("9.0", "7.2", "every kernel"))
_OLD_78 = _ptx(("8.0", "7.1", _ELEMENT_WISE), ("9.0", "7.8", "every kernel"))
_STUCK = _ptx(("9.0", "8.5", _ELEMENT_WISE, "9.0"), ("10.0", "8.5", "every kernel"))
_FREE = _ptx(("9.0", "8.5", _ELEMENT_WISE), ("10.0", "8.5", "every kernel"))
_NCCL_15: dict[str, Any] = {"nccl": "2.16.5", "nccl_sass": ("5.0", "6.0", "7.0", "7.5", "8.0")}

FACTS = {
    one.tensorflow: one
    for one in (
        _one("2.4.4", "3.6 3.7 3.8", "11.0", "8.0.4", (*_OLD, "8.0"), _OTHER_70, unusable=_NO_PTX),
        _one("2.5.3", "3.6 3.7 3.8 3.9", "11.2", "8.1.0", (*_OLD, "8.0"), _EVERY_72),
        _one("2.9.1", "3.7 3.8 3.9 3.10", "11.2", "8.1.0", (*_OLD, "8.0"), _EVERY_72),
        _one("2.10.1", "3.7 3.8 3.9 3.10", "11.2", "8.1.0", (*_OLD, "8.0"), _EVERY_72),
        _one("2.13.1", "3.8 3.9 3.10 3.11", "11.8", "8.6.0", _OLD, _OLD_78),
        _one("2.14.1", "3.9 3.10 3.11", "11.8", "8.6.0", _OLD, _OLD_78),
        _one("2.15.0", "3.9 3.10 3.11", "12.2", "8.9.4", _OLD[1:], _ptx(("9.0", "8.1", "every kernel"))),
        _one("2.15.1", "3.9 3.10 3.11", "12.2", "8.9.4", _OLD[1:],
             _ptx(("8.0", "7.1", _ELEMENT_WISE), ("9.0", "8.1", "every kernel")), **_NCCL_15),
        _one("2.16.1", "3.9 3.10 3.11 3.12", "12.3", "8.9.6", ("5.0", *_NEW[:3]), _STUCK),
        _one("2.16.2", "3.9 3.10 3.11 3.12", "12.3", "8.9.6", ("5.0", *_NEW[:3]), _STUCK),
        _one("2.17.1", "3.9 3.10 3.11 3.12", "12.3", "8.9.6", _NEW, _STUCK),
        _one("2.18.1", "3.9 3.10 3.11 3.12", "12.5.1", "9.3.0", _NEW, _STUCK),
        _one("2.19.1", "3.9 3.10 3.11 3.12", "12.5.1", "9.3.0", _NEW, _STUCK),
        _one("2.20.0", "3.9 3.10 3.11 3.12 3.13", "12.5.1", "9.3.0", _NEW, _STUCK),
        _one("2.21.0", "3.10 3.11 3.12 3.13", "12.5.1", "9.3.0", _NEW, _FREE, nccl="", nccl_how="loaded"),
        _one("2.22.0rc0", "3.10 3.11 3.12 3.13 3.14", "12.5.1", "9.10.0", _NEW, _FREE, nccl_how="loaded",
             prerelease=True),
        _one("2.22.0rc1", "3.10 3.11", "12.5.1", "9.10.0", (), (), deep=False, nccl_how="", prerelease=True),
    )
}  # fmt: skip


def compiled(tensorflow: str) -> Compiled:
    """What the real function of this name does, with these facts."""
    if tensorflow not in FACTS:
        raise UsageError(f"nothing is known of {tensorflow}", remedy="use another")
    return FACTS[tensorflow]


KNOWN = Known(compiled=compiled, releases=tuple(FACTS), today=date(2026, 11, 30))
