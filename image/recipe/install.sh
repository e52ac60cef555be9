#!/bin/sh
# Runs inside the new root with the unpacked essential packages: installs every package from
# /var/cache/debs by its own dpkg. The lists and their order come from the manifest; nothing here
# may depend on the host or the time.
set -eu
cd /var/cache/debs
install='dpkg --force-unsafe-io --force-depends'
# These two create accounts and folders that all other maintainer scripts require.
$install --install "$(sed -n 's/^base-passwd //p' /run/essential)"
$install --install "$(sed -n 's/^base-files //p' /run/essential)"
cut -d ' ' -f 2 /run/essential | xargs $install --unpack
dpkg --force-unsafe-io --configure -a
cut -d ' ' -f 2 /run/rest | xargs $install --unpack
dpkg --force-unsafe-io --configure -a
# Fail when a dependency is missing: --force-depends above only relaxes the order.
dpkg --audit
test -z "$(dpkg --audit)"
