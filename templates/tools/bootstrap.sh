#!/bin/sh
# Turns an unpacked essential set into a configured Debian system, from the .debs in /run/debs alone.
# usage: bootstrap.sh PYTHON_VERSION EPOCH; the version is empty where the packages bring no Python
# The result is in /layer: the whole root file system, no file in it newer than EPOCH.
set -eu
python=$1 epoch=$2
export DEBIAN_FRONTEND=noninteractive DEBCONF_NONINTERACTIVE_SEEN=true LC_ALL=C TZ=UTC
# passwd stamps accounts with the day, which would be in the image.
export SOURCE_DATE_EPOCH="$epoch"
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# No service starts while packages are configured.
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d

# Documentation, manuals and translations stay out; licences stay in.
cat > /etc/dpkg/dpkg.cfg.d/tfenv <<'CFG'
path-exclude=/usr/share/doc/*
path-include=/usr/share/doc/*/copyright
path-include=/usr/share/doc/apt/examples/sources.list
path-include=/usr/share/doc/apt/examples/debian.sources
path-exclude=/usr/share/info/*
path-exclude=/usr/share/lintian/*
path-exclude=/usr/share/locale/*
path-exclude=/usr/share/man/*
CFG

# Maintainer scripts need an awk before mawk's own alternative exists.
ln -sf mawk /usr/bin/awk
dpkg --force-unsafe-io --force-depends --install /run/debs/essential/*.deb
dpkg --force-unsafe-io --force-depends --unpack /run/debs/rest/*.deb
dpkg --force-unsafe-io --configure --pending
test -z "$(dpkg --audit)"

# Debian's own list of its archives, so that apt works in images made from this one.
if [ -e /usr/share/doc/apt/examples/debian.sources ]; then
    cp /usr/share/doc/apt/examples/debian.sources /etc/apt/sources.list.d/
else # before Debian 13
    cp /usr/share/doc/apt/examples/sources.list /etc/apt/sources.list
fi
rm -rf /usr/share/doc/apt/examples /usr/sbin/policy-rc.d

if [ -n "$python" ]; then
    find /usr/lib/python3* -name __pycache__ -prune -exec rm -rf {} +
    /bin/sh /run/tools/compile.sh "python$python" "/usr/lib/python$python"
    [ -e /usr/bin/python3 ] || ln -s "python$python" /usr/bin/python3
fi

# What differs from one build to the next: caches, logs and backups.
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/apt/archives/* /var/cache/ldconfig/aux-cache \
    /var/log/apt /var/log/*.log /var/lib/dpkg/*-old /var/cache/debconf/*-old /etc/passwd- /etc/group- /etc/shadow- /etc/gshadow- \
    /var/lib/systemd /tmp/* /root/.cache

mkdir /layer
for path in /*; do
    case $path in
    /layer | /dev | /proc | /run | /sys) ;;
    *) cp --archive "$path" /layer/ ;;
    esac
done
mkdir /layer/dev /layer/proc /layer/run /layer/sys
# The builder's own, mounted into every step.
rm -f /layer/etc/resolv.conf /layer/etc/hosts /layer/etc/hostname /layer/etc/mtab
/bin/sh /run/tools/settle.sh /layer "$epoch"
