"""``python3 -m tfenv.load FILE``: write what runs in images, for a host without the tfenv command."""

import sys
from pathlib import Path

from . import pack

Path(sys.argv[1]).write_bytes(pack())
