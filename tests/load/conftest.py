"""The program is no installed package: put its folder on the path, as the zipapp does."""

from __future__ import annotations

import sys
from pathlib import Path

VERIFIER = Path(__file__).resolve().parents[2] / "verifier"

sys.path.insert(0, str(VERIFIER))
