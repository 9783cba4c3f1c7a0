"""Entry point of the zipapp: ``python verify.pyz --declared declared.json --suite smoke``."""

import sys

if sys.version_info < (3, 7):
    # Nothing of the package is imported: an older Python cannot even parse it.
    sys.stdout.write('{"event": "end", "verdict": "unverified", "facts": {}, ')
    sys.stdout.write('"reason": "the suite needs Python 3.7 or newer"}\n')
    sys.exit(3)

from tfenv_verify.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
