"""How exports are written: comments, and YAML in one form."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any


def commented(lines: Iterable[str]) -> str:
    """Lines as comments, with an empty line after them."""
    return "".join(f"{f'# {line}'.rstrip()}\n" for line in lines) + "\n"


def yaml(data: Mapping[str, Any]) -> str:
    """Plain data as YAML, keys in their order."""
    from ruamel.yaml import YAML

    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style = False
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    writer.width = 4096
    writer.indent(mapping=2, sequence=4, offset=2)
    out = io.StringIO()
    writer.dump(dict(data), out)
    return out.getvalue()
