"""Entry point of the zipapp: ``python load.pyz stress --minutes 2``."""

import sys

from tfenv_load.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
