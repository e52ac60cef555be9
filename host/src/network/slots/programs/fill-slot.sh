# Makes the devices, routes and rules of a slot; runs inside its network namespace.
#
# Arguments: the slot's uid, host address, address and rules. Environment: as of make-slots.sh.
set -eu
uid=$1 host_address=$2 address=$3 rules=$4

cd /proc/sys/net
echo 1 >ipv4/ip_forward
# Ignore a guest's ARP requests for the veth's address.
echo 1 >ipv4/conf/all/arp_ignore
echo 0 >ipv4/conf/all/send_redirects
echo 0 >ipv4/conf/default/send_redirects
# No rate limit on ICMP refusals; they do not count against the host-wide ICMP limit.
echo 0 >ipv4/icmp_ratemask
# Absent if the host's kernel was booted without IPv6.
for scope in all default; do
  if [ -e "ipv6/conf/$scope/disable_ipv6" ]; then echo 1 >"ipv6/conf/$scope/disable_ipv6"; fi
done

# The static neighbour entry: ARP replies of the guest are neither awaited nor trusted.
ip -batch - <<END
tuntap add dev $TAP_NAME mode tap user $uid
link set $TAP_NAME address $GATEWAY_MAC
address add $GATEWAY_ADDRESS/$TAP_PREFIX_LENGTH dev $TAP_NAME
neighbour add $GUEST_ADDRESS lladdr $GUEST_MAC dev $TAP_NAME nud permanent
END

printf '%s' "$rules" | nft -f -

# A bucket of 4 ms at this rate, at least 64 KiB. Excess traffic waits for 50 ms, then is dropped.
burst=$((RATE_MBIT * 500))
if [ "$burst" -lt 65536 ]; then burst=65536; fi
for device in "$TAP_NAME" "$INNER_VETH_NAME"; do
  echo "qdisc add dev $device root tbf rate ${RATE_MBIT}mbit burst $burst latency 50ms"
done | tc -batch -

ip -batch - <<END
link set $TAP_NAME up
address add $address/$SLOT_PREFIX_LENGTH dev $INNER_VETH_NAME
link set $INNER_VETH_NAME up
route add default via $host_address
END
