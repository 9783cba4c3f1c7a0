"""Entry point of the zipapp: ``python3 doctor.pyz``."""

import sys

from tfenv_doctor.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
