// Shell scripts that make and unmake slots in batches. Text only; runs nothing.
import { GUEST_NETWORK } from '@berth/protocol/guest.ts';
import { ROOT_TABLE, rootRules, slotRules } from './firewall.ts';
import {
  GATEWAY_MAC,
  HOST_VETH_PREFIX,
  INNER_VETH_NAME,
  NAMESPACE_PREFIX,
  SLOT_PREFIX_LENGTH,
  TAP_NAME,
  TAP_PREFIX_LENGTH,
  hostVethName,
  namespaceName,
} from './slot.ts';
import type { Slot } from './slot.ts';

/**
 * Makes the slots and prepares the root namespace: forwarding and the shared rules. Prints
 * `ip_forward` if it enabled that. The root part comes first in the same run, so no slot exists
 * without a firewall.
 */
export function makeScript(slots: readonly Slot[]): string {
  const rootLines = slots.flatMap((slot) => [
    `netns add ${slot.namespace}`,
    `link add ${slot.hostVeth} type veth peer name ${INNER_VETH_NAME} netns ${slot.namespace}`,
    // No IPv6 link-local address either.
    `link set ${slot.hostVeth} addrgenmode none`,
    `address add ${slot.hostAddress}/${SLOT_PREFIX_LENGTH} dev ${slot.hostVeth}`,
    `link set ${slot.hostVeth} up`,
  ]);
  return [
    `nft -f - <<'END'${rootRules()}END`,
    `if [ "$(cat /proc/sys/net/ipv4/ip_forward)" != 1 ]; then`,
    `  echo 1 >/proc/sys/net/ipv4/ip_forward`,
    `  echo ip_forward`,
    `fi`,
    `ip -batch - <<'END'`,
    ...rootLines,
    'END',
    ...slots.map(insideScript),
    '',
  ].join('\n');
}

function insideScript(slot: Slot): string {
  return [
    `nsenter --net=${slot.namespacePath} sh -eu <<'INSIDE'`,
    'cd /proc/sys/net',
    'echo 1 >ipv4/ip_forward',
    // Ignore a guest's ARP requests for the veth's address.
    'echo 1 >ipv4/conf/all/arp_ignore',
    'echo 0 >ipv4/conf/all/send_redirects',
    'echo 0 >ipv4/conf/default/send_redirects',
    // No rate limit on ICMP refusals; they do not count against the host-wide ICMP limit.
    'echo 0 >ipv4/icmp_ratemask',
    // Absent if the host's kernel was booted without IPv6.
    'for scope in all default; do',
    '  if [ -e ipv6/conf/$scope/disable_ipv6 ]; then echo 1 >ipv6/conf/$scope/disable_ipv6; fi',
    'done',
    `ip -batch - <<'END'`,
    `tuntap add dev ${TAP_NAME} mode tap user ${slot.uid}`,
    `link set ${TAP_NAME} address ${GATEWAY_MAC}`,
    `address add ${GUEST_NETWORK.gateway}/${TAP_PREFIX_LENGTH} dev ${TAP_NAME}`,
    // Static neighbour entry: ARP replies of the guest are neither awaited nor trusted.
    `neighbour add ${GUEST_NETWORK.address} lladdr ${GUEST_NETWORK.mac} dev ${TAP_NAME} nud permanent`,
    'END',
    `nft -f - <<'END'${slotRules(slot)}END`,
    `ip -batch - <<'END'`,
    `link set ${TAP_NAME} up`,
    `address add ${slot.address}/${SLOT_PREFIX_LENGTH} dev ${INNER_VETH_NAME}`,
    `link set ${INNER_VETH_NAME} up`,
    `route add default via ${slot.hostAddress}`,
    'END',
    'INSIDE',
  ].join('\n');
}

/**
 * Unmakes slots from any half-made state, and prints the names of remaining objects. Deletes the
 * veth first and by name: a namespace held by a process would keep it.
 */
export function unmakeScript(numbers: readonly number[]): string {
  const list = numbers.join(' ');
  return [
    `ip -force -batch - 2>/dev/null <<'END' || :`,
    ...numbers.map((number) => `link delete ${hostVethName(number)}`),
    ...numbers.map((number) => `netns delete ${namespaceName(number)}`),
    'END',
    `for number in ${list}; do`,
    `  if [ -e /run/netns/${NAMESPACE_PREFIX}$number ]; then echo "namespace ${NAMESPACE_PREFIX}$number"; fi`,
    `  while read -r name rest; do`,
    `    if [ "$name" = "${HOST_VETH_PREFIX}$number:" ]; then echo "device ${HOST_VETH_PREFIX}$number"; fi`,
    `  done </proc/self/net/dev`,
    'done',
    '',
  ].join('\n');
}

/** Removes the rules of the root namespace, unless an instance still has a slot. */
export function removeRootRulesScript(registryFolder: string): string {
  return [
    `cd '${registryFolder.replaceAll(`'`, `'\\''`)}'`,
    'for entry in [0-9]*; do',
    '  if [ -e "$entry" ]; then exit 0; fi',
    'done',
    `if nft list table ${ROOT_TABLE} >/dev/null 2>&1; then nft delete table ${ROOT_TABLE}; fi`,
    '',
  ].join('\n');
}
