#!/bin/sh
# Unpacks the provider's Python to where it will stay, compiles it there, and puts it into /layer.
# usage: python.sh PYTHON EPOCH
set -eu
python=$1 epoch=$2
folder=${python%/bin/*}
mkdir -p "$folder"
tar -xzf /run/interpreter/*.tar.gz --directory "$folder" --strip-components=1 --no-same-owner
# What only people who build or draw with Python need; and byte code, which is compiled once more.
rm -rf "$folder"/share "$folder"/include "$folder"/lib/python3*/test "$folder"/lib/python3*/idlelib \
    "$folder"/lib/python3*/turtledemo "$folder"/lib/python3*/site-packages/*
for library in "$folder"/lib/python3*; do
    find "$library" -name __pycache__ -prune -exec rm -rf {} +
    /bin/sh /run/tools/compile.sh "$python" "$library"
done
mkdir -p "/layer${folder%/*}"
mv "$folder" "/layer${folder%/*}/"
/bin/sh /run/tools/settle.sh /layer "$epoch"
