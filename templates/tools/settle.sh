#!/bin/sh
# Sets the time of everything in FOLDER that is newer than EPOCH (Unix seconds) to EPOCH.
# usage: settle.sh FOLDER EPOCH
#
# Done here and not by the exporter's rewrite-timestamp, which unpacks and packs every layer a second time, and which
# an engine refuses while it stores the image itself: https://github.com/moby/buildkit/issues/4230
set -eu
find "$1" -newermt "@$2" -exec touch --no-dereference --date "@$2" {} +
