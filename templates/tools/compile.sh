#!/bin/sh
# Compiles every module below FOLDER to byte code that is the same in every build and never stale.
# usage: compile.sh PYTHON FOLDER
#
# Rewritten file times make time-stamped byte code stale, so it carries the source's hash instead. One worker and a
# fixed hash seed: https://github.com/python/cpython/issues/129724. -S: a .pth file may import, and so compile, first.
set -eu
PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 \
    "$1" -S -m compileall -q -f -j1 --invalidation-mode unchecked-hash "$2"
