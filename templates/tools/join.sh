#!/bin/sh
# The small last layer, in /layer: library search path, CUDA folder, user, home.
set -eu
for folder in /opt/tfenv/cuda/nvidia/*/lib; do
    [ -d "$folder" ] && echo "$folder"
done > /etc/ld.so.conf.d/tfenv-cuda.conf
ldconfig -X
useradd --no-log-init --uid 1000 --user-group --no-create-home --home-dir /home/tfenv --shell /bin/bash tfenv

mkdir -p /layer/etc /layer/usr/local /layer/home/tfenv/.cache/cuda /layer/workspace
ln -s /opt/tfenv/cuda/nvidia/cuda_nvcc /layer/usr/local/cuda
# Sticky and open to all, so that any --user can write; a volume goes to .cache.
chmod 1777 /layer/home/tfenv /layer/home/tfenv/.cache /layer/home/tfenv/.cache/cuda /layer/workspace
cd /etc
cp --archive --parents --target-directory /layer/etc \
    ld.so.cache ld.so.conf.d/tfenv-cuda.conf passwd group shadow gshadow subuid subgid
