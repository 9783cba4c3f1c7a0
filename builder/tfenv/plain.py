"""Frozen dataclasses as plain JSON values, and back: the same keys, the right types, nothing else."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

_T = TypeVar("_T")
#: Told where a value stands (``wheels[0].name``) and the value; raises ValueError if it may not be there.
Check = Callable[[str, Any], None]


def to_plain(value: Any) -> Any:
    """Dataclasses become objects, tuples become lists."""
    if is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    return [to_plain(item) for item in value] if isinstance(value, tuple) else value


def from_plain(kind: type[_T], data: Any, *, check: Check | None = None, where: str = "") -> _T:
    """A dataclass from parsed JSON.

    Args:
        check: what a text or a number has to be beside its type.
        where: what to call ``data`` in messages.

    Raises:
        ValueError: names the key that is missing, unknown or not what it should be.
    """
    if not isinstance(data, Mapping):
        raise ValueError(f"{where or 'the file'}: expected an object")
    prefix = f"{where}." if where else ""
    hints = _hints(kind)  # type: ignore[arg-type]  # mypy takes a type variable's class for unhashable
    for problem, keys in (("missing", hints.keys() - data.keys()), ("unknown", data.keys() - hints.keys())):
        if keys:
            raise ValueError(f"{prefix}{problem} key {', '.join(sorted(keys))}")
    return kind(**{name: _value(hint, data[name], f"{prefix}{name}", check) for name, hint in hints.items()})


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _value(hint: Any, data: Any, where: str, check: Check | None) -> Any:
    if hint in (str, int, bool):
        if type(data) is not hint:
            raise ValueError(f"{where}: expected {hint.__name__}, found {data!r}")
        if check is not None:
            check(where, data)
        return data
    origin, args = get_origin(hint), get_args(hint)
    if origin is tuple:
        if not isinstance(data, list):
            raise ValueError(f"{where}: expected a list")
        each = (args[0],) * len(data) if args[-1] is ... else args
        if len(each) != len(data):
            raise ValueError(f"{where}: expected {len(each)} items, found {len(data)}")
        pairs = zip(each, data, strict=True)
        return tuple(_value(inner, item, f"{where}[{n}]", check) for n, (inner, item) in enumerate(pairs))
    if origin is Literal:
        if data not in args:
            raise ValueError(f"{where}: expected one of {', '.join(map(repr, args))}")
        return data
    if origin in (Union, types.UnionType):  # X | None and no other union
        return None if data is None else _value(args[0], data, where, check)
    return from_plain(hint, data, check=check, where=where)
