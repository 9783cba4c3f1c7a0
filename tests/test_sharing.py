"""Images with one CUDA set share its layer, whatever their TensorFlow, Python and base."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from tfenv import digest
from tfenv.digest import Digest
from tfenv.sharing import shared
from tfenv.workspace import Workspace

REPOSITORY = Path(__file__).parent.parent


def _digest(**layers: int) -> Digest:
    return Digest(
        inputs="",
        lock="",
        manifest="",
        config="",
        diff_ids=tuple(layers),
        layer_bytes=tuple(layers.values()),
        builder="",
    )


def test_a_layer_that_images_share_counts_once() -> None:
    of = shared([_digest(base=1, cuda=100, tf1=10), _digest(base=1, cuda=100, tf2=20)])
    assert (of.each, of.apart, of.together, of.common) == ((111, 121), 232, 131, 101)


def test_images_without_a_common_layer_take_their_sum() -> None:
    of = shared([_digest(a=1), _digest(b=2)])
    assert (of.together, of.common) == (of.apart, 0)
    assert shared([]).together == 0


def _recorded() -> dict[str, list[Digest]]:
    workspace = Workspace(REPOSITORY, {})
    sets: dict[str, list[Digest]] = defaultdict(list)
    for cell in workspace.matrix.cells:
        if cell.cuda_from == "wheels" and (found := digest.read(workspace.folder(cell))):
            sets[cell.cuda_set.name].append(found)
    return sets


@pytest.mark.parametrize("name", ["cu11.8-cudnn8.6", "cu12.5-cudnn9.3"])
def test_recorded_images_of_one_set_are_those_of_one_plus_their_own_parts(name: str) -> None:
    digests = _recorded()[name]
    assert len(digests) > 1
    of = shared(digests)
    # The CUDA layer is most of every image, so it is in common only if it is the very same layer.
    assert all(of.common > size / 2 for size in of.each)
