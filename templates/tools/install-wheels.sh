#!/bin/sh
# Installs one layer's locked wheels with the locked uv, offline and by hash. Layer `source` holds source archives of
# Python code, built with the setuptools that the environment has by then; there is no compiler.
# usage: install-wheels.sh PYTHON LAYER UV_PIP_ARGUMENTS...
set -eu
python=$1 layer=$2
shift 2
case $layer in
source) how="--no-binary :all: --no-build-isolation" ;;
*) how="--only-binary :all:" ;;
esac
work=/layer/.install
mkdir -p "$work"
"$python" -m zipfile -e /run/wheels/tool/uv-*.whl "$work"
uv=$(find "$work" -path "*.data/scripts/uv")
chmod 755 "$uv"
# The cache is on the target's filesystem, so that unpacked files are linked into place instead of copied.
# shellcheck disable=SC2086  # several words
UV_CACHE_DIR=$work/cache UV_LINK_MODE=hardlink UV_NO_INSTALLER_METADATA=1 UV_PYTHON_DOWNLOADS=never UV_OFFLINE=1 \
    "$uv" --quiet --no-progress --no-config pip install "$@" \
    --no-deps --no-index $how --require-hashes --find-links "/run/wheels/$layer" \
    --requirements "/run/wheels/$layer/requirements.txt"
rm -rf "$work" /layer/opt/tfenv/cuda/.lock /opt/tfenv/venv/.lock
