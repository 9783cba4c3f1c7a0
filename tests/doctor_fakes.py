"""Recorded hosts for the doctor: a few on which all is well, and conditions that change one thing."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from tfenv.doctor.evidence import Evidence, of_plain

FOLDER = Path(__file__).parent / "doctor_hosts"
_PARTS = ("system", "user", "env", "files", "folders", "links", "nodes", "spaces", "commands", "network")


@cache
def _yaml(name: str) -> Any:
    return YAML(typ="safe").load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))


def conditions() -> list[dict[str, Any]]:
    return [row for name in ("conditions", "conditions_more") for row in _yaml(name)]


def bases() -> list[str]:
    return list(_yaml("bases"))


def host(base: str, *changes: dict[str, Any]) -> Evidence:
    """A base with changes on top of it."""
    return of_plain(_filled(_changed(_plain(base), *changes)))


def _plain(base: str) -> dict[str, Any]:
    own = copy.deepcopy(_yaml("bases")[base])
    like = own.pop("like", None)
    return _changed(_plain(like), own) if like else _changed({}, own)


def _changed(data: dict[str, Any], *changes: dict[str, Any]) -> dict[str, Any]:
    data = copy.deepcopy(data)
    for change in copy.deepcopy(changes):
        for part, prefixes in change.get("drop", {}).items():
            data[part] = {
                key: value for key, value in data.get(part, {}).items() if not key.startswith(tuple(prefixes))
            }
        for part in _PARTS:
            if part in change:
                data.setdefault(part, {}).update(change[part])
        if "recorded" in change:
            data["recorded"] = change["recorded"]
        _filled(data)
        for where, pairs in change.get("edit", {}).items():
            for old, new in pairs:
                _edit(data, where, old, new)
    return data


def _edit(data: dict[str, Any], where: str, old: str, new: str) -> None:
    if where in data.get("commands", {}):
        text = data["commands"][where]["out"]
        assert old in text, (where, old)
        data["commands"][where]["out"] = text.replace(old, new)
    else:
        assert old in data["files"][where], (where, old)
        data["files"][where] = data["files"][where].replace(old, new)


def _filled(data: dict[str, Any]) -> dict[str, Any]:
    for ran in data.get("commands", {}).values():
        if ran.get("out", "").startswith("@"):
            ran["out"] = (FOLDER / ran["out"][1:]).read_text(encoding="utf-8")
    return data


def every() -> Iterator[tuple[str, Evidence]]:
    """Every host: the bases, the conditions, and what is unlike them."""
    for base in bases():
        yield base, host(base)
    for row in conditions():
        yield row["name"], host(row["base"], row)
        for number, other in enumerate(row.get("unlike", ())):
            yield f"{row['name']}, unlike {number}", host(row["base"], row, other)
