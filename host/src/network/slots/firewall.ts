// nftables rule sets: one per slot namespace, and one in the root namespace that all instances on
// the host share. Text only, for `nft -f`. Both are default-deny, and either alone keeps a guest
// from the host and its neighbours. An egress policy narrows them: ../egress/rules.ts.
import { GUEST_NETWORK, GUEST_PORT } from '@berth/protocol/guest.ts';
import { BLOCKED_RANGES } from './blocked-ranges.ts';
import { GATEWAY_UID, HOST_VETH_PREFIX, INNER_VETH_NAME, MODEL_GATEWAY_UID, TAP_NAME } from './slot.ts';
import type { Slot } from './slot.ts';

/**
 * Resolver port on the host end of each slot's veth pair. Below 1024: no unprivileged process of
 * the host can listen there first. Below 512: no outgoing NFS or RPC connection takes it by chance.
 * Not 53: a resolver of the host may hold that on all addresses.
 */
export const RESOLVER_PORT = 353;

/**
 * Port of the model gateway at the same address, and at the guest's own gateway. Below 1024 and
 * 512 for the same reasons.
 */
export const MODEL_PORT = 354;

/** Limits of new connections of one guest to the model gateway, which all guests share. */
export const MODEL_CONNECTIONS = { perSecond: 20, burst: 64 } as const;

/** Limit of tracked connections per guest; further ones are refused. */
export const CONNECTIONS_PER_GUEST = 4_096;

/**
 * Limit of packets per second from one guest to the resolver. The kernel drops the excess, at no
 * cost to the daemon.
 */
export const RESOLVER_PACKETS_PER_SECOND = 1_000;

/** Burst allowance of that limit, in packets. */
export const RESOLVER_BURST = 500;

/**
 * Table of the root namespace, shared by all instances. Its text depends only on the names of the
 * slots' veths.
 */
export const ROOT_TABLE = 'inet berth';

const blockedSet = `
  set blocked {
    type ipv4_addr
    flags interval
    elements = { ${BLOCKED_RANGES.map((range) => range.block).join(', ')} }
  }`;

/**
 * Rules of the root namespace; loading them atomically replaces an earlier version. Blocks the
 * closed addresses again, because the host may rewrite destinations before this hook, for example
 * for a container's published port. Only guests reach the resolvers: questions of a local user or
 * of a neighbour on the network would use up the limits of a guest.
 */
export function rootRules(): string {
  return `
table ${ROOT_TABLE}
delete table ${ROOT_TABLE}
table ${ROOT_TABLE} {${blockedSet}

  chain forward {
    type filter hook forward priority filter; policy accept;
    iifname "${HOST_VETH_PREFIX}*" goto forward_from_guest
    oifname "${HOST_VETH_PREFIX}*" goto forward_to_guest
  }
  chain forward_from_guest {
    meta nfproto != ipv4 drop
    oifname "${HOST_VETH_PREFIX}*" drop
    fib saddr . iif oif missing drop
    ct state established,related accept
    ct state invalid drop
    ip daddr @blocked drop
    accept
  }
  chain forward_to_guest {
    meta nfproto ipv4 ct state established,related accept
    drop
  }

  chain input {
    type filter hook input priority filter; policy accept;
    iifname "${HOST_VETH_PREFIX}*" goto input_from_guest
    meta l4proto { tcp, udp } th dport ${RESOLVER_PORT} drop
    tcp dport ${MODEL_PORT} drop
  }
  chain input_from_guest {
    meta nfproto != ipv4 drop
    fib saddr . iif oif missing drop
    ct state established,related accept
    ct state invalid drop
    meta l4proto { tcp, udp } th dport ${RESOLVER_PORT} fib daddr . iif type local accept
    tcp dport ${MODEL_PORT} fib daddr . iif type local accept
    drop
  }

  chain output {
    type filter hook output priority filter; policy accept;
    oifname "${HOST_VETH_PREFIX}*" goto output_to_guest
    oifname != "${HOST_VETH_PREFIX}*" meta skuid ${GATEWAY_UID} goto output_of_gateway
    meta skuid ${MODEL_GATEWAY_UID} goto output_of_model_gateway
  }
  chain output_of_gateway {
    meta l4proto { tcp, udp } th dport 53 accept
    drop
  }
  chain output_of_model_gateway {
    meta l4proto tcp accept
    udp dport 53 accept
    drop
  }
  chain output_to_guest {
    meta nfproto != ipv4 drop
    meta skuid ${GATEWAY_UID} tcp dport ${GUEST_PORT} accept
    meta skuid ${MODEL_GATEWAY_UID} tcp sport ${MODEL_PORT} ct direction reply accept
    meta skuid != 0 drop
  }

  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    iifname "${HOST_VETH_PREFIX}*" oifname != "${HOST_VETH_PREFIX}*" masquerade
  }
}
`;
}

/**
 * Rules of one slot's namespace. The resolver's packet limit precedes the rule for established
 * connections: one guest socket is one connection, however much it sends. Replies on connections
 * opened by the host are not limited: 1,000 packets of file contents are only 1.4 MB.
 */
export function slotRules(slot: Slot): string {
  const { address: guest, gateway, mac } = GUEST_NETWORK;
  const resolver = `${slot.hostAddress}:${RESOLVER_PORT}`;
  const dns = `meta l4proto { tcp, udp } th dport ${RESOLVER_PORT}`;
  const excess = `limit rate over ${RESOLVER_PACKETS_PER_SECOND}/second burst ${RESOLVER_BURST} packets`;
  const { perSecond, burst } = MODEL_CONNECTIONS;
  const excessModels = `limit rate over ${perSecond}/second burst ${burst} packets`;
  return `
table netdev berth {
  chain from_guest {
    type filter hook ingress device "${TAP_NAME}" priority filter; policy drop;
    ether type ip ether saddr ${mac} ip saddr ${guest} accept
    ether type arp ether saddr ${mac} arp saddr ether ${mac} arp saddr ip ${guest} accept
  }
}
table inet berth {${blockedSet}

  chain dstnat {
    type nat hook prerouting priority dstnat; policy accept;
    iifname "${INNER_VETH_NAME}" ip saddr ${slot.hostAddress} ip daddr ${slot.address} dnat ip to ${guest}
    iifname "${TAP_NAME}" ip daddr ${gateway} meta l4proto { tcp, udp } th dport 53 dnat ip to ${resolver}
    iifname "${TAP_NAME}" ip daddr ${gateway} tcp dport ${MODEL_PORT} dnat ip to ${slot.hostAddress}
  }
  chain srcnat {
    type nat hook postrouting priority srcnat; policy accept;
    iifname "${TAP_NAME}" oifname "${INNER_VETH_NAME}" snat ip to ${slot.address}
  }

  chain forward {
    type filter hook forward priority filter; policy drop;
    meta nfproto != ipv4 drop
    iifname "${TAP_NAME}" ip daddr ${slot.hostAddress} ${dns} ct direction original ${excess} drop
    iifname "${TAP_NAME}" ip daddr ${slot.hostAddress} tcp dport ${MODEL_PORT} ct state new ${excessModels} drop
    ct state established,related accept
    ct state invalid drop
    iifname "${INNER_VETH_NAME}" oifname "${TAP_NAME}" ip saddr ${slot.hostAddress} ct status dnat accept
    iifname "${TAP_NAME}" oifname "${INNER_VETH_NAME}" goto guest_out
  }
  chain guest_out {
    ip daddr ${slot.hostAddress} ${dns} ct original ip daddr ${gateway} goto counted
    ip daddr ${slot.hostAddress} tcp dport ${MODEL_PORT} ct original ip daddr ${gateway} goto counted
    ip daddr @blocked reject with icmpx admin-prohibited
    goto counted
  }
  chain counted {
    ct count over ${CONNECTIONS_PER_GUEST} reject with icmpx admin-prohibited
    accept
  }

  chain input {
    type filter hook input priority filter; policy drop;
    iifname "${TAP_NAME}" meta nfproto ipv4 reject with icmpx admin-prohibited
  }
  chain output {
    type filter hook output priority filter; policy drop;
    icmp type { destination-unreachable, time-exceeded, parameter-problem } accept
    oifname "${TAP_NAME}" tcp flags rst accept
  }
}
`;
}
