"""The stages of one cell joined together: what `build`, `verify` and `up` each do a part of."""

from .checking import check, declared
from .instead import on_stand_in, recorded_image, todays
from .locks import lock_of
from .making import Made, committed, make, make_twice, prepare, record, tag, tag_image

__all__ = [
    "Made",
    "check",
    "committed",
    "declared",
    "lock_of",
    "make",
    "make_twice",
    "on_stand_in",
    "prepare",
    "record",
    "recorded_image",
    "tag",
    "tag_image",
    "todays",
]
