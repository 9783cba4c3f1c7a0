"""Dataclasses as JSON values and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest
from tfenv.plain import from_plain, to_plain


@dataclass(frozen=True)
class Inner:
    name: str
    size: int


@dataclass(frozen=True)
class Outer:
    kind: Literal["a", "b"]
    right: bool
    inner: Inner
    many: tuple[Inner, ...]
    pairs: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Optional:
    name: str | None
    inner: Inner | None


VALUE = Outer(
    kind="a", right=True, inner=Inner("x", 1), many=(Inner("y", 2), Inner("z", 3)), pairs=(("p", 4),)
)


def changed(**changes: Any) -> dict[str, Any]:
    return {**to_plain(VALUE), **changes}


def test_there_and_back() -> None:
    assert to_plain(VALUE)["many"] == [{"name": "y", "size": 2}, {"name": "z", "size": 3}]
    assert from_plain(Outer, to_plain(VALUE)) == VALUE


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([], "the file: expected an object"),
        (changed(kind="c"), "kind: expected one of 'a', 'b'"),
        (changed(kind=[]), "kind: expected one of"),
        (changed(right=1), "right: expected bool, found 1"),
        (changed(more=1), "unknown key more"),
        ({k: v for k, v in changed().items() if k != "kind"}, "missing key kind"),
        (changed(inner={"name": "x"}), r"inner\.missing key size"),
        (changed(inner="x"), "inner: expected an object"),
        (changed(many={}), "many: expected a list"),
        (changed(many=[{"name": "x", "size": True}]), r"many\[0\]\.size: expected int, found True"),
        (changed(pairs=[["p"]]), r"pairs\[0\]: expected 2 items, found 1"),
        (changed(pairs=[["p", "q"]]), r"pairs\[0\]\[1\]: expected int"),
    ],
)
def test_what_is_not_as_declared_is_named(data: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        from_plain(Outer, data)


def test_a_check_sees_every_value_and_where_it_stands() -> None:
    seen: dict[str, Any] = {}
    from_plain(Outer, to_plain(VALUE), check=lambda where, value: seen.update({where: value}))
    assert seen["inner.name"] == "x" and seen["many[1].size"] == 3 and seen["pairs[0][0]"] == "p"


def test_what_a_check_refuses_is_refused() -> None:
    def no_y(where: str, value: Any) -> None:
        if value == "y":
            raise ValueError(f"{where}: no y")

    with pytest.raises(ValueError, match=r"many\[0\]\.name: no y"):
        from_plain(Outer, to_plain(VALUE), check=no_y)


def test_a_value_may_be_none_where_it_is_declared_so() -> None:
    for value in (Optional(name=None, inner=None), Optional(name="x", inner=Inner("y", 1))):
        assert from_plain(Optional, to_plain(value)) == value
    assert to_plain(Optional(name=None, inner=None)) == {"name": None, "inner": None}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"name": 1, "inner": None}, "name: expected str, found 1"),
        ({"name": None, "inner": "x"}, "inner: expected an object"),
        ({"name": None, "inner": {"name": None, "size": 1}}, r"inner\.name: expected str, found None"),
        ({"name": None}, "missing key inner"),
    ],
)
def test_what_may_be_none_is_else_as_declared(data: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        from_plain(Optional, data)


def test_a_check_sees_what_is_not_none() -> None:
    seen: dict[str, Any] = {}
    data = {"name": None, "inner": {"name": "x", "size": 1}}
    from_plain(Optional, data, check=lambda where, value: seen.update({where: value}))
    assert seen == {"inner.name": "x", "inner.size": 1}
