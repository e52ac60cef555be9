# Unmakes slots from any half-made state, and prints the names of remaining objects. Deletes the
# veth first and by name: a namespace held by a process would keep it.
#
# Arguments: the numbers of the slots. Environment: the name prefixes.
set -eu

{
  for number in "$@"; do echo "link delete $HOST_VETH_PREFIX$number"; done
  for number in "$@"; do echo "netns delete $NAMESPACE_PREFIX$number"; done
} | ip -force -batch - 2>/dev/null || :

for number in "$@"; do
  if [ -e "/run/netns/$NAMESPACE_PREFIX$number" ]; then echo "namespace $NAMESPACE_PREFIX$number"; fi
  while read -r name rest; do
    if [ "$name" = "$HOST_VETH_PREFIX$number:" ]; then echo "device $HOST_VETH_PREFIX$number"; fi
  done </proc/self/net/dev
done
