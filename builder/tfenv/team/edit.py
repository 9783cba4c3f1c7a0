"""Write a team's matrix.yaml: rows taken from tfenv's own, environments added; comments and order stay."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfenv.errors import UsageError

if TYPE_CHECKING:
    from tfenv.model import Cell

_HEAD = """\
# This team's cells of TensorFlow, CUDA and Python, and the environments that extend them; see `tfenv list`.
# For editors: `tfenv schema` prints the JSON Schema of this file.
# Quote versions such as "3.10": without quotes they are numbers, and 3.10 is 3.1.

"""


def round_trip() -> Any:
    """A reader and writer of YAML that keeps comments, order and quotes."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def dumped(data: Any) -> str:
    """The text of a matrix."""
    out = io.StringIO()
    round_trip().dump(data, out)
    return out.getvalue()


def first_matrix(catalogue: Path, cells: Iterable[Cell], repository: str) -> str:
    """The text of a team's first matrix, with the rows of these cells and what they need.

    Args:
        catalogue: tfenv's own matrix.yaml.
    """
    source = round_trip().load(catalogue.read_text("utf-8"))
    chosen = list(cells)
    data: dict[str, Any] = {
        "repository": repository,
        "defaults": {"base": chosen[0].base.name},
        "bases": {},
        "cuda_sets": {},
        "trim": [dict(rule) for rule in source.get("trim", [])],
        "rows": [],
    }
    for cell in chosen:
        add_cell(data, source, cell)
    return _HEAD + dumped(data)


def add_cell(data: Any, source: Mapping[str, Any], cell: Cell) -> None:
    """Add a cell of tfenv's own matrix to a team's: its row, narrowed to that Python and base."""
    base, own = cell.base.name, source["bases"][cell.base.name]
    mine = data["bases"].setdefault(base, {k: _plain(v) for k, v in own.items() if k != "provided_pythons"})
    if not cell.base.brings(cell.python):
        _append(mine.setdefault("provided_pythons", []), cell.python)
    name = cell.cuda_set.name
    cuda_set = source["cuda_sets"][name]
    there = data["cuda_sets"].setdefault(name, {k: _plain(v) for k, v in cuda_set.items() if k != "images"})
    if cell.base.kind == "nvidia":
        there.setdefault("images", {})[base] = str(cuda_set["images"][base])
    row = next((one for one in data["rows"] if str(one["tensorflow"]) == cell.row.tensorflow), None)
    if row is None:
        data["rows"].append(_narrowed(source, cell))
        return
    _append(row["pythons"], cell.python)
    _append(row["bases"], base)
    if str(row["cuda_set"]) != name:
        row.setdefault("cuda_set_on", {})[base] = name


def _narrowed(source: Mapping[str, Any], cell: Cell) -> dict[str, Any]:
    """The row of one cell: with its own libraries as the row's, and no word of other Pythons and bases."""
    own = next(row for row in source["rows"] if str(row["tensorflow"]) == cell.row.tensorflow)
    left_out = {
        "cuda_set",
        "cuda_set_on",
        "pythons",
        "bases",
        "default_base",
        "default_python",
        "other_libraries",
    }
    made: dict[str, Any] = {
        "tensorflow": cell.row.tensorflow,
        "cuda_set": cell.cuda_set.name,
        "pythons": [_quoted(cell.python)],
        "bases": [cell.base.name],
    }
    if "other_libraries" in own and _differs(cell):
        made["other_libraries"] = str(own["other_libraries"])
    # Said aloud: the default follows a fact that a newer tfenv may correct, and the lock would not.
    made["exclude_newer"] = cell.row.exclude_newer
    made.update({key: _plain(value) for key, value in own.items() if key not in {*left_out, *made}})
    return made


def _differs(cell: Cell) -> bool:
    from tfenv import facts
    from tfenv.compat.serving import differs

    compiled = facts.compiled(cell.row.tensorflow)
    return bool(differs(compiled, cuda=cell.cuda_set.cuda, cudnn=cell.cuda_set.cudnn))


def add_environment(data: Any, name: str, entry: Mapping[str, Any], *, replace: bool = False) -> None:
    """Add an environment.

    Raises:
        UsageError: there is one of that name, and it is not to be replaced.
    """
    known = data.setdefault("environments", {})
    if name in known and not replace:
        raise UsageError(
            f"there is an environment {name}",
            remedy=f"edit it in matrix.yaml, then: tfenv lock {name} --upgrade all; or add --replace",
        )
    known[name] = dict(entry)


def _append(values: Any, value: str) -> None:
    if value not in [str(one) for one in values]:
        values.append(_quoted(value) if value.replace(".", "").isdigit() else value)


def _quoted(value: str) -> Any:
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString

    return DoubleQuotedScalarString(value)


def _plain(value: Any) -> Any:
    """A copy without comments and anchors, in which text that looks like a number stays quoted."""
    if isinstance(value, Mapping):
        return {_key(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, str) and value.replace(".", "").isdigit():
        return _quoted(str(value))
    return str(value) if isinstance(value, str) else value


def _key(key: Any) -> Any:
    return _quoted(str(key)) if str(key).replace(".", "").isdigit() else str(key)
