"""Every module and its byte code under the given folders: what is stale, of another kind, missing."""

import importlib.util
import json
import sys
from pathlib import Path

UNCHECKED_HASH = 0b01


def compiles(path):
    try:
        compile(path.read_bytes(), path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def kind(source, cached):
    """In which list a module belongs; empty where all is well."""
    if not cached.exists():
        return "missing" if compiles(source) else ""
    header = cached.read_bytes()[:16]
    if header[:4] != importlib.util.MAGIC_NUMBER or int.from_bytes(header[4:8], "little") != UNCHECKED_HASH:
        return "other_kind"
    return "" if header[8:] == importlib.util.source_hash(source.read_bytes()) else "stale"


told = {"modules": 0, "missing": [], "other_kind": [], "stale": [], "orphans": []}
for top in map(Path, sys.argv[1:]):
    for source in top.rglob("*.py"):
        told["modules"] += 1
        where = kind(source, Path(importlib.util.cache_from_source(str(source))))
        if where:
            told[where].append(str(source))
    for cached in top.rglob("*.pyc"):
        if not (cached.parent.parent / (cached.name.split(".")[0] + ".py")).exists():
            told["orphans"].append(str(cached))
print(json.dumps(told))
