"""What a pasted text is: files that people write are told from what programs print."""

from __future__ import annotations

import pytest
from tfenv.knowledge.sorting import sort_of


@pytest.mark.parametrize(
    ("text", "sort"),
    [
        ("cells:\n  - tensorflow: '2.15'\n", "cells"),
        ("targets: [sm_120]\ncells:\n  - tensorflow: '2.15'\n", "cells"),
        ("# syntax\nFROM python:3.11\nRUN pip install \\\n    tensorflow\n", "dockerfile"),
        ("RUN --mount=type=cache,target=/x apt-get update\n", "dockerfile"),
        ("tensorflow==2.15.1\nnumpy>=1.26  # why\n-r more.txt\n", "requirements"),
        ("tensorflow==2.15.1 \\\n    --hash=sha256:aa\nkeras\n", "requirements"),
        ("", "output"),
        ("# nothing\n", "output"),
        ("tensorflow\n", "output"),
        ("Step 1/2 : FROM python:3.11\n ---> 3f2a\n", "output"),
        ("FROM python:3.11\nERROR: failed to solve: not found\n", "output"),
        ("tensorflow==2.15.1\nERROR: No matching distribution found for tensorflow==2.15.1\n", "output"),
        ("tensorflow        2.15.0   cpu_py311_0   conda-forge\n", "output"),
        ("CUDA_VISIBLE_DEVICES=/bin/bash\n", "output"),
        ("error: Distribution `x==1` can't be installed\n", "output"),
    ],
)
def test_sort(text: str, sort: str) -> None:
    assert sort_of(text) == sort
