"""What a team's environment may be called: never like a cell, a tag of one, or an image that is marked."""

from __future__ import annotations

import re

from tfenv.cells import parse_name
from tfenv.patterns import ENVIRONMENT, EXPECTED

#: Endings that tfenv gives to images that are not what a lock says, and to dated tags.
_ENDINGS = re.compile(r".*(-(?:unlocked|stand-in|[0-9]{8}))")


def wrong_name(name: str) -> str:
    """Why an environment cannot be called so; empty where it can.

    The name becomes an image's tag, a folder and a key of matrix.yaml.
    """
    if not re.fullmatch(ENVIRONMENT, name):
        return f"expected {EXPECTED[ENVIRONMENT]}"
    if parse_name(name) is not None:
        return "it reads like the name of a cell or a base, and tags of those move"
    if found := _ENDINGS.fullmatch(name):
        return f"names that end in {found[1]} are given to images by tfenv"
    return ""
