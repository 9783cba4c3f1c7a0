"""Layers that were read are kept in the store, by their digest: the next diff of them takes a moment."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from tfenv.memo import Memo, hash_of

from .layout import Image, Stored
from .model import Entry, Layer

_FORMAT = b"1"
_MOST = 256 << 20  # bytes of one kept layer, unpacked


class Recaller:
    """What was read before, by digest; it was checked against the digest then, and is not hashed again."""

    def __init__(self, memo: Memo) -> None:
        self._memo = memo

    def layer(self, sha256: str, make: Callable[[], Layer]) -> Layer:
        """A ``layout.Recall``: the layer of that hash, read if it is not known."""
        return self._memo.recall(lambda: _key("layer", sha256), make, _dump, _load)

    def keep_image(self, digest: str, image: Image) -> None:
        """Keep what an image of the engine consists of, by its digest."""
        stored = [[of.member, of.sha256, of.size] for of in image.stored]
        self._memo.put(_key("image", digest), [image.digest, dict(image.config), stored])

    def image(self, digest: str) -> Image | None:
        """An image of which every layer is known; None where one is not."""
        kept = self._memo.get(_key("image", digest))
        if kept is None:
            return None
        manifest, config, listed = kept
        stored = tuple(Stored(*of) for of in listed)
        layers = []
        for of in stored:
            known = self._memo.get(_key("layer", of.sha256))
            if known is None:
                return None
            layers.append(_load(known))
        return Image(digest=manifest, config=config, stored=stored, layers=tuple(layers))


def _key(what: str, digest: str) -> str:
    return hash_of(b"diff", _FORMAT, what.encode(), digest.encode())


def _dump(layer: Layer) -> Any:
    import zstandard

    plain = json.dumps([layer.size, layer.note, dict(layer.texts), dict(layer.entries)]).encode()
    return base64.b85encode(zstandard.compress(plain, 3)).decode()


def _load(kept: Any) -> Layer:
    import zstandard

    try:
        plain = zstandard.decompress(base64.b85decode(kept), max_output_size=_MOST)
        size, note, texts, entries = json.loads(plain)
        return Layer({path: Entry(*of) for path, of in entries.items()}, texts, size, note)
    except (zstandard.ZstdError, TypeError, AttributeError) as error:
        raise ValueError(str(error)) from error
