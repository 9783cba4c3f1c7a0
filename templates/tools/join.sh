#!/bin/sh
# The small last layer, in /layer: library search path, CUDA folder, second names of libraries, user, home.
# usage: join.sh CUDA_FOLDER [NAME=TARGET ...]
set -eu
cuda=$1
shift
mkdir -p /layer/etc /layer/usr/local /layer/home/tfenv/.cache/cuda /layer/workspace

# Its name sorts before that of the CUDA images' own file: what the wheels bring wins.
conf=/etc/ld.so.conf.d/00-tfenv-cuda.conf
for folder in /opt/tfenv/cuda/nvidia/*/lib; do
    if [ -d "$folder" ]; then echo "$folder"; fi
done > "$conf"
ldconfig -X

# XLA looks for ptxas and libdevice in the CUDA folder.
if [ -d "$cuda" ]; then # the base's own, which has neither
    mkdir -p "/layer$cuda/bin"
    ln -s /opt/tfenv/cuda/nvidia/cuda_nvcc/bin/ptxas "/layer$cuda/bin/ptxas"
    ln -s /opt/tfenv/cuda/nvidia/cuda_nvcc/nvvm "/layer$cuda/nvvm"
else
    ln -s /opt/tfenv/cuda/nvidia/cuda_nvcc "/layer$cuda"
fi

# The loader's cache knows libraries by their sonames only, so another name has to be in a folder that it searches.
for link in "$@"; do
    set -- /opt/tfenv/cuda/nvidia/*/lib/"${link#*=}"
    [ -e "$1" ] || { echo "there is no ${link#*=} for ${link%%=*}" >&2; exit 1; }
    mkdir -p /layer/usr/lib/x86_64-linux-gnu
    ln -s "$1" "/layer/usr/lib/x86_64-linux-gnu/${link%%=*}"
done

# Some images bring a user of their own with this number.
if other=$(getent passwd 1000); then userdel "${other%%:*}"; fi
useradd --no-log-init --uid 1000 --user-group --no-create-home --home-dir /home/tfenv --shell /bin/bash tfenv
# Sticky and open to all, so that any --user can write; a volume goes to .cache.
chmod 1777 /layer/home/tfenv /layer/home/tfenv/.cache /layer/home/tfenv/.cache/cuda /layer/workspace
cd /etc
cp --archive --parents --target-directory /layer/etc \
    ld.so.cache "ld.so.conf.d/${conf##*/}" passwd group shadow gshadow subuid subgid
