# Makes network slots and prepares the root namespace: forwarding and the shared rules. Prints
# `ip_forward` if it enabled that. The root part comes first, so no slot exists without a firewall.
#
# Arguments: per slot its number, uid, host address, address and rules.
# Environment: ROOT_RULES, and the names and addresses that all slots share.
set -eu
programs=${0%/*}

printf '%s' "$ROOT_RULES" | nft -f -

if [ "$(cat /proc/sys/net/ipv4/ip_forward)" != 1 ]; then
  echo 1 >/proc/sys/net/ipv4/ip_forward
  echo ip_forward
fi

root_parts() {
  while [ $# -gt 0 ]; do
    echo "netns add $NAMESPACE_PREFIX$1"
    echo "link add $HOST_VETH_PREFIX$1 type veth peer name $INNER_VETH_NAME netns $NAMESPACE_PREFIX$1"
    # No IPv6 link-local address either.
    echo "link set $HOST_VETH_PREFIX$1 addrgenmode none"
    echo "address add $3/$SLOT_PREFIX_LENGTH dev $HOST_VETH_PREFIX$1"
    echo "link set $HOST_VETH_PREFIX$1 up"
    shift 5
  done
}
root_parts "$@" | ip -batch -

while [ $# -gt 0 ]; do
  nsenter --net="/run/netns/$NAMESPACE_PREFIX$1" sh "$programs/fill-slot.sh" "$2" "$3" "$4" "$5"
  shift 5
done
