#!/bin/sh
# Runs inside the new root, which holds the unpacked essential packages: installs every package from /var/cache/debs with the root's own dpkg.
# The lists and their order come from the manifest; nothing here may depend on the machine or on the time.
set -eu
cd /var/cache/debs
install='dpkg --force-unsafe-io --force-depends'
# These two make the accounts and folders that the maintainer scripts of all others rely on.
$install --install "$(sed -n 's/^base-passwd //p' /run/essential)"
$install --install "$(sed -n 's/^base-files //p' /run/essential)"
cut -d ' ' -f 2 /run/essential | xargs $install --unpack
dpkg --force-unsafe-io --configure -a
cut -d ' ' -f 2 /run/rest | xargs $install --unpack
dpkg --force-unsafe-io --configure -a
# Fails when a dependency is missing: --force-depends above was about order only.
dpkg --audit
test -z "$(dpkg --audit)"
