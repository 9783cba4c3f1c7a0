#!/bin/sh
# The small last layer: library search path, CUDA folder, user, home.
set -eu
for folder in /opt/tfenv/cuda/nvidia/*/lib; do
    [ -d "$folder" ] && echo "$folder"
done > /etc/ld.so.conf.d/tfenv-cuda.conf
ldconfig -X
ln -s /opt/tfenv/cuda/nvidia/cuda_nvcc /usr/local/cuda
useradd --no-log-init --uid 1000 --user-group --no-create-home --home-dir /home/tfenv --shell /bin/bash tfenv
# Sticky and open to all, so that any --user can write; .cache is where a volume goes.
mkdir -p /home/tfenv/.cache/cuda /workspace
chmod 1777 /home/tfenv /home/tfenv/.cache /home/tfenv/.cache/cuda /workspace
rm -rf /var/cache/ldconfig/aux-cache /etc/passwd- /etc/group- /etc/shadow- /etc/gshadow- /etc/subuid- /etc/subgid-
