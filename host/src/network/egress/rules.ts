// nftables rules of an egress policy: a table of its own in the slot's namespace, beside the rules
// of firewall.ts, which stay in force. Text only.
//
// Both directions of the connections that the guest opens pass the policy. Connections allowed
// under the policy carry its mark; a new policy has another mark, so their next packet is judged
// anew.
import { createHash } from 'node:crypto';
import { EGRESS_LIMITS, type EgressPolicy } from '@berth/protocol/egress.ts';
import { GUEST_NETWORK } from '@berth/protocol/guest.ts';
import { MODEL_PORT, RESOLVER_PORT } from '../slots/firewall.ts';
import { INNER_VETH_NAME, TAP_NAME, type Slot } from '../slots/slot.ts';

export const EGRESS_TABLE = 'inet berth_egress';

/** Raise it with the rules: the next daemon then replaces the rules of the VMs that it adopts. */
const RULES_VERSION = 3;

/** Addresses of names that a guest can reach at the same time. */
export const RESOLVED_ADDRESSES = 1_024;

/** Time for which the kernel keeps a refused destination: until the next count. */
const DENIED_SECONDS = 60;

/** Longest name in a comment: the rules of a full slot must fit one argument of a program. */
const COMMENT_CHARACTERS = 80;

/** A resolved address and the seconds for which it stays allowed. */
export interface AllowedAddress {
  address: string;
  /** The resolved name, for the next daemon. Letters, digits, `.`, `-` and `_` only. */
  name: string | null;
  seconds: number;
}

/** Name of the chain of a policy: derived from its content, not from its revision. */
export function policyChain(policy: EgressPolicy): string {
  return `policy_${digestOf(policy).toString('hex', 0, 8)}`;
}

/** Replaces any earlier policy of the slot. The packets of `open` pass no rule. */
export function egressRules(slot: Slot, policy: EgressPolicy, resolved: readonly AllowedAddress[]): string {
  const removal = `table ${EGRESS_TABLE}\ndelete table ${EGRESS_TABLE}\n`;
  if (policy.mode === 'open') return removal;

  const chain = policyChain(policy);
  const mark = `0x${((digestOf(policy).readUInt32BE(8) | 1) >>> 0).toString(16)}`;
  const ports = policy.ports.length === 0 ? '' : ` meta l4proto { tcp, udp } th dport { ${policy.ports.join(', ')} }`;
  const relay = `ip daddr ${slot.hostAddress} meta l4proto { tcp, udp } th dport ${RESOLVER_PORT}`;
  // Model providers are no destination of the guest: the project's key opens them.
  const models = `ip daddr ${slot.hostAddress} tcp dport ${MODEL_PORT}`;
  return `${removal}
table ${EGRESS_TABLE} {
  set ranges {
    type ipv4_addr
    flags interval
    auto-merge
    ${elements(policy.ranges)}
  }
  set resolved {
    type ipv4_addr
    flags timeout
    size ${RESOLVED_ADDRESSES * 2}
    ${elements(resolved.map(elementOf))}
  }
  counter denied { }
  set denied_to {
    type ipv4_addr
    flags dynamic, timeout
    timeout ${DENIED_SECONDS}s
    size ${EGRESS_LIMITS.deniedDestinations}
  }

  chain forward {
    type filter hook forward priority filter - 10; policy accept;
    iifname "${TAP_NAME}" ct direction original goto ${chain}
    iifname "${INNER_VETH_NAME}" ip saddr != ${slot.hostAddress} ct direction reply ct mark != ${mark} drop
  }
  chain ${chain} {
    ${relay} ct original ip daddr ${GUEST_NETWORK.gateway} accept
    ${models} ct original ip daddr ${GUEST_NETWORK.gateway} accept
    ct state established,related ct mark ${mark} accept
    ip daddr @ranges${ports} goto permitted
    ip daddr @resolved${ports} goto permitted
    counter name denied
    add @denied_to { ip daddr }
    ct state established meta l4proto tcp reject with tcp reset
    reject with icmpx admin-prohibited
  }
  chain permitted {
    ct mark set ${mark} accept
  }
}
`;
}

/** Adds resolved addresses, or renews their time, and removes others. */
export function resolvedChange(added: readonly AllowedAddress[], removed: readonly string[]): string {
  const set = `element ${EGRESS_TABLE} resolved`;
  const drop = [...added.map(({ address }) => address), ...removed];
  // An element keeps its time when it is added again. Deleting a missing element fails.
  return [
    `add ${set} { ${drop.join(', ')} }`,
    `delete ${set} { ${drop.join(', ')} }`,
    `add ${set} { ${added.map(elementOf).join(', ')} }`,
  ].join('\n');
}

const elements = (of: readonly string[]): string => (of.length === 0 ? '' : `elements = { ${of.join(', ')} }`);

function elementOf({ address, name, seconds }: AllowedAddress): string {
  const comment = name !== null && name.length <= COMMENT_CHARACTERS ? ` comment "${name}"` : '';
  return `${address} timeout ${seconds}s${comment}`;
}

function digestOf({ mode, names, ranges, ports }: EgressPolicy): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([RULES_VERSION, mode, names, ranges, ports]))
    .digest();
}
