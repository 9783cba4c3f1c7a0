#!/bin/sh
# Installs the .debs in /run/debs on top of an image, and leaves no trace of when that was.
# usage: packages.sh EPOCH; no file that it writes is dated later
set -eu
epoch=$1
export DEBIAN_FRONTEND=noninteractive DEBCONF_NONINTERACTIVE_SEEN=true LC_ALL=C TZ=UTC
# passwd stamps accounts with the day, which would be in the image.
export SOURCE_DATE_EPOCH="$epoch"
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# No service starts while packages are configured.
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d

# One that another needs configured before it can be unpacked is so at the second try.
for try in 1 2 3; do
    if dpkg --force-unsafe-io --unpack /run/debs/*/*.deb; then break; fi
    dpkg --force-unsafe-io --configure --pending || [ "$try" -lt 3 ]
done
dpkg --force-unsafe-io --configure --pending
test -z "$(dpkg --audit)"

# What differs from one build to the next: caches, logs, backups, and byte code dated by its source.
find /usr/lib/python3 /usr/share -name __pycache__ -prune -exec rm -rf {} + 2> /dev/null || :
rm -rf /usr/sbin/policy-rc.d /var/cache/apt/*.bin /var/cache/ldconfig/aux-cache /var/cache/fontconfig/* \
    /var/log/apt /var/log/*.log /var/lib/dpkg/*-old /var/cache/debconf/*-old /etc/passwd- /etc/group- \
    /etc/shadow- /etc/gshadow- /etc/subuid- /etc/subgid- /tmp/*

# The builder's own files are mounted over the last three.
find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run \) -prune -o \
    ! -path /etc/resolv.conf ! -path /etc/hosts ! -path /etc/hostname \
    -newermt "@$epoch" -exec touch --no-dereference --date "@$epoch" {} +
