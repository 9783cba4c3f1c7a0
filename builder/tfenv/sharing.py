"""What images have in common: layers are stored once, however many images have them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tfenv.digest import Digest


@dataclass(frozen=True)
class Shared:
    """Bytes of some images as stored.

    Args:
        each: of every image, in the order given; apart: their sum; together: with every layer once.
        common: bytes of the layers that all of them have.
    """

    each: tuple[int, ...]
    together: int
    common: int

    @property
    def apart(self) -> int:
        """What the images would take if nothing was shared."""
        return sum(self.each)


def shared(digests: Iterable[Digest]) -> Shared:
    """What images take together; a layer is known by the hash of its content."""
    images = [dict(zip(of.diff_ids, of.layer_bytes, strict=True)) for of in digests]
    union: dict[str, int] = {}
    for layers in images:
        union.update(layers)
    in_all = set.intersection(*map(set, images)) if images else set()
    return Shared(
        each=tuple(sum(layers.values()) for layers in images),
        together=sum(union.values()),
        common=sum(union[layer] for layer in in_all),
    )
