from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from test_verify import CELL
from tfenv.errors import IntegrityError
from tfenv.load.whose import require_of


@pytest.mark.parametrize(
    ("release", "said", "same"),
    [
        ("2.15.1", "2.15.1", True),
        ("2.15.0.post1", "2.15.0", True),
        ("2.22.0rc0", "2.22.0-rc0", True),
        ("2.15.1", "", True),
        ("2.15.1", "2.15.0", False),
        ("2.15.1", "2.15.10", False),
        ("2.22.0rc0", "2.22.0", False),
        ("2.22.0", "2.22.0-rc1", False),
        ("2.15.1", "nonsense", False),
        ("2.15.1", 5, False),
        ("2.15.1", {"a": 1}, False),
    ],
)
@pytest.mark.parametrize("kind", ["row", "worker"])
def test_lines_are_of_the_cells_tensorflow(release: str, said: Any, same: bool, kind: str) -> None:
    cell = replace(CELL, row=replace(CELL.row, tensorflow=release))
    events = [{"event": "start", "python": "3.11.2"}, {"event": kind, "tensorflow": said}]
    if same:
        require_of(cell, events)
        return
    with pytest.raises(IntegrityError, match="this was measured with TensorFlow") as caught:
        require_of(cell, events)
    assert cell.name in caught.value.message and caught.value.remedy


def test_and_of_its_python() -> None:
    require_of(CELL, [{"event": "start"}, {"event": "sample", "tensorflow": "1"}])
    with pytest.raises(IntegrityError, match=r"with Python 3\.9\.1, and .* has 3\.11"):
        require_of(CELL, [{"event": "start", "python": "3.9.1"}])
