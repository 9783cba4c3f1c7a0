"""What a cell's build has to give: images/<cell>/digest.json, and a build held against it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from tfenv.errors import IntegrityError

FILE_NAME = "digest.json"
Likeness = Literal["identical", "same content", "different", "not recorded"]


@dataclass(frozen=True, kw_only=True)
class Digest:
    """The digests of one build, and the builder that gave them.

    Args:
        inputs: sha256 of all that was built from; lock: sha256 of the lock among it.
        manifest, config: digests with ``sha256:``; diff_ids: of the uncompressed layers.
        layer_bytes: size of each layer as stored, in the order of diff_ids.
        builder: what built, with versions, e.g. ``Docker Engine 26.1.5``.
    """

    inputs: str
    lock: str
    manifest: str
    config: str
    diff_ids: tuple[str, ...]
    layer_bytes: tuple[int, ...]
    builder: str

    @property
    def compressed_bytes(self) -> int:
        """Size of all layers as stored."""
        return sum(self.layer_bytes)


def compare(built: Digest, recorded: Digest | None) -> Likeness:
    """How a build relates to the recorded one of the same inputs.

    The uncompressed layers and the configuration are the content; the manifest also depends on the
    compressor inside the builder.
    """
    if recorded is None or recorded.inputs != built.inputs:
        return "not recorded"
    if recorded.manifest == built.manifest:
        return "identical"
    if recorded.config == built.config and recorded.diff_ids == built.diff_ids:
        return "same content"
    return "different"


def require_likeness(built: Digest, recorded: Digest | None, cell: str) -> str:
    """Refuse what breaks the promise that the same lock and builder give the same digest.

    Returns:
        What to tell the user where another builder gave other bits; else nothing.

    Raises:
        IntegrityError: the same builder gave another content than it did when the digest was recorded.
    """
    likeness = compare(built, recorded)
    if recorded is None or likeness in ("identical", "not recorded"):
        return ""
    told = (
        f"{cell}: {built.manifest} by {built.builder} is not the recorded {recorded.manifest} by "
        f"{recorded.builder}"
    )
    if recorded.builder == built.builder:
        raise IntegrityError(
            f"{told}; no tag was moved",
            remedy=f"tfenv build --check-reproducible {cell} shows what differs; --record accepts it",
        )
    return f"{told}: {likeness}, another builder"


def read(folder: Path) -> Digest | None:
    """The recorded digest of a cell's folder; None where there is none.

    Raises:
        IntegrityError: the file is damaged.
    """
    path = folder / FILE_NAME
    try:
        data = json.loads(path.read_text("utf-8"))
        if extra := data.keys() - Digest.__dataclass_fields__.keys():
            raise ValueError(f"unknown key {', '.join(sorted(extra))}")
        return from_json(data)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise IntegrityError(
            f"{path} is damaged: {error}", remedy="restore it: git checkout images/"
        ) from error


def from_json(data: Any) -> Digest:
    """A digest from parsed JSON; other keys may be there too.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    fields = {name: data[name] for name in Digest.__dataclass_fields__}
    diff_ids, sizes = tuple(fields["diff_ids"]), tuple(int(size) for size in fields["layer_bytes"])
    if len(diff_ids) != len(sizes):
        raise ValueError(f"{len(diff_ids)} layers and {len(sizes)} sizes")
    return Digest(**{**fields, "diff_ids": diff_ids, "layer_bytes": sizes})


def dump(digest: Digest) -> str:
    """The file's text: sorted, one value a line."""
    return json.dumps(asdict(digest), indent=2, sort_keys=True) + "\n"
