"""The committed files: what every wheel said, and beside it the facts that the rest of tfenv reads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfenv.audit.release import facts_of
from tfenv.errors import UsageError
from tfenv.files import write_all
from tfenv.versions import order

FORMAT = 1


def wheels_file(facts: Path) -> Path:
    """Where the audit of the wheels is kept for a facts file: apart, because it is read rarely."""
    return facts.parent / "wheels" / facts.name


def load(facts: Path) -> dict[str, Any]:
    """What is kept of every release, by version; empty where there is no file yet.

    Raises:
        UsageError: the file is of another kind.
    """
    path = wheels_file(facts)
    try:
        document = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:
        document = None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise UsageError(
            f"{path} is no audit that this tfenv can read",
            remedy=f"remove it and type: tfenv facts audit --output {facts}",
        )
    return dict(document["releases"])


def write(facts: Path, releases: Mapping[str, Any]) -> bool:
    """Write both files; whether anything changed. Same input, same bytes."""
    kept = {version: releases[version] for version in sorted(releases, key=order)}
    wanted = {facts: facts_text(kept), wheels_file(facts): _audit(kept)}
    changed = {path: text for path, text in wanted.items() if _text(path) != text}
    for path, text in changed.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_all(path.parent, {path.name: text})
    return bool(changed)


def facts_text(kept: Mapping[str, Any]) -> str:
    """The facts file for what is kept, one line per fact, so that a diff says what changed."""
    blocks = []
    known = {version: facts_of(entry) for version, entry in kept.items() if entry["wheels"]}
    for version, entry in known.items():
        facts = [f"    {json.dumps(k)}: {json.dumps(v)}" for k, v in entry.items() if k != "source"]
        sources = [f"      {json.dumps(k)}: {json.dumps(v)}" for k, v in entry["source"].items()]
        source = '    "source": {\n' + ",\n".join(sources) + "\n    }"
        blocks.append(f"  {json.dumps(version)}: {{\n" + ",\n".join([*facts, source]) + "\n  }")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def _audit(releases: Mapping[str, Any]) -> str:
    text = json.dumps({"format": FORMAT, "releases": releases}, indent=1, ensure_ascii=False) + "\n"
    text = text.encode("utf-8", "replace").decode()  # an index may send half of a surrogate pair
    # What holds no brackets goes on one line; a line break is never part of a JSON string.
    return _INNERMOST.sub(lambda found: re.sub(r"\n *", " ", found[0]), text)


_INNERMOST = re.compile(r"[\[{]\n[^\[\]{}]*[\]}]")


def _text(path: Path) -> str | None:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return None
