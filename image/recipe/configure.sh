#!/bin/sh
# Runs inside the root after all packages are configured: creates the user, and removes files that
# an image must not have.
set -eu

# PATH is the same for all programs: /etc/profile.d/berth.sh has it for login shells.
echo '[ -z "$BASH_VERSION" ] || . "$HOME/.bashrc"' > /etc/skel/.profile

groupadd --gid 1000 berth
useradd --uid 1000 --gid 1000 --groups sudo --create-home --shell /bin/bash berth
passwd --lock berth >/dev/null

# The package's example names Debian's public archive.
cp /usr/share/doc/apt/examples/debian.sources /etc/apt/sources.list.d/debian.sources
sed -i '/^#/d' /etc/apt/sources.list.d/debian.sources

ln -sf runit-init /usr/sbin/init
# Run only the services of the recipe; those of the packages would log to the disk.
rm -rf /etc/sv/* /etc/runit/runsvdir/default/*

# Each VM gets its own identity; VMs must never share one.
rm -f /etc/ssh/ssh_host_* /etc/machine-id /var/lib/dbus/machine-id /var/lib/systemd/random-seed
rm -f /etc/hostname /etc/resolv.conf /etc/hosts

# The essential packages were unpacked before dpkg read its exclusions.
find /usr/share/doc -mindepth 1 -not -type d -not -name copyright -delete
find /usr/share/locale -mindepth 1 -not -type d -not -name locale.alias -delete
rm -rf /usr/share/man /usr/share/info /usr/share/lintian
mkdir -p /usr/share/man
find /usr/share/doc /usr/share/locale -mindepth 1 -type d -empty -delete

# Files that differ between builds: times, orders and caches.
find /var/log -type f -delete
rm -rf /var/cache/ldconfig /var/cache/apt/* /var/lib/apt/lists/* /tmp/* /var/tmp/*
rm -f /var/cache/debconf/*-old /var/lib/dpkg/*-old /etc/passwd- /etc/group- /etc/shadow- /etc/gshadow- /etc/subuid- /etc/subgid- /etc/.pwd.lock
rm -f /var/lib/dpkg/lock /var/lib/dpkg/lock-frontend /var/lib/dpkg/triggers/Lock
