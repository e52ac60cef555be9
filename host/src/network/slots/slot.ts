// Network slots and the interface of their pool. Names and addresses derive from the slot's number
// alone; nothing here touches the host.
import type { EgressDenied, EgressPolicy } from '@berth/protocol/egress.ts';
import { GUEST_NETWORK } from '@berth/protocol/guest.ts';

/** TAP device inside every slot's namespace. */
export const TAP_NAME = 'tap0';

/** Inner end of the veth pair, inside the slot's namespace. */
export const INNER_VETH_NAME = 'up0';

/**
 * MAC of every slot's TAP end. The gateway's neighbour entry that a guest restores from the
 * template is then valid in every slot. Templates must be booted with the same MAC.
 */
export const GATEWAY_MAC = '52:54:00:b0:00:02';

/**
 * Name prefix of slot namespaces and of the host ends of veth pairs; the number follows. Reserved:
 * nothing else on a host may use it.
 */
export const NAMESPACE_PREFIX = 'berth';
export const HOST_VETH_PREFIX = 'bv';

/**
 * First uid of the slots: slot n's QEMU runs as this plus n. Between ordinary users (below 65,536)
 * and Debian's subordinate uids (from 100,000, /etc/login.defs). A user with such a uid could kill
 * a VM, and would be killed with it.
 */
export const FIRST_SLOT_UID = 66_000;

/** Uid of the guest gateway, which may connect to guest daemons only; 65,999 is of fake VMs. */
export const GATEWAY_UID = FIRST_SLOT_UID - 2;

/** The same for the fake driver: no firewall rule, because its guests are on the loopback. */
export const FAKE_GATEWAY_UID = FIRST_SLOT_UID - 3;

/** Uid of the model gateway, which answers guests and connects to model providers. */
export const MODEL_GATEWAY_UID = FIRST_SLOT_UID - 4;
/** The same for the fake driver. */
export const FAKE_MODEL_GATEWAY_UID = FIRST_SLOT_UID - 5;

/** Exclusive upper bound of slot uids. */
export const END_OF_SLOT_UIDS = 100_000;

/**
 * A VM's network attachment: a namespace with a TAP, joined to the root namespace by a dedicated
 * veth pair.
 */
export interface Slot {
  number: number;
  /** Name of the network namespace, for `ip netns exec`. */
  namespace: string;
  /**
   * Path of the namespace, for `nsenter --net=PATH`, which unlike `ip netns exec` keeps the mounts.
   */
  namespacePath: string;
  /**
   * Name of the TAP device inside the namespace, up and owned by `uid`: QEMU opens it with
   * `script=no,downscript=no`.
   */
  tap: string;
  /** Uid and gid of the VM's QEMU process. */
  uid: number;
  /** Host end of the veth pair, in the root namespace. */
  hostVeth: string;
  /**
   * Address at which the host daemon dials the guest from the root namespace: all ports are
   * forwarded to the guest's own address.
   */
  address: string;
  /** Address of the host end: the only peer that reaches `address`. */
  hostAddress: string;
}

/** Pool of network slots. Verbs are idempotent; any daemon of the instance may free a slot. */
export interface Network {
  /**
   * Prepares the host (forwarding, root namespace firewall) and the first idle slots. Resolves with
   * one sentence per changed host setting. Rejects with {@link NetworkError}.
   */
  prepare(): Promise<string[]>;

  /**
   * Claims an idle slot; resolves once the claim is in the host's registry. Waits while the pool is
   * empty. Rejects with {@link NetworkError} if no slot can be made, with the signal's reason on
   * abort.
   */
  claim(vmId: string, signal: AbortSignal): Promise<Slot>;

  /**
   * Takes over a slot claimed by an earlier daemon of this instance, and serves its guest the names
   * of the policy. Leaves the earlier daemon's rules in the kernel until {@link setEgress}. Rejects
   * with {@link NetworkError} if the slot is gone.
   */
  adopt(number: number, egress: EgressPolicy): Promise<Slot>;

  /**
   * Enforces an egress policy in a claimed slot; a slot starts with `open`. Rejects with {@link
   * NetworkError}; the former rules then stay in the kernel, and the guest resolves only names of
   * the new policy.
   */
  setEgress(number: number, egress: EgressPolicy): Promise<void>;

  /**
   * Attempts refused by the policy since the slot was claimed or adopted; null if none. Includes
   * DNS queries at once, packets as of the last {@link countEgressDenied}.
   */
  egressDenied(number: number): EgressDenied | null;

  /** Reads the refused packets of all claimed slots from the kernel. Never rejects. */
  countEgressDenied(): Promise<void>;

  /**
   * Unmakes a slot: on return the namespace has no name and no connection in or out. Idempotent;
   * ignores slots of other instances. End the slot's processes first: the next VM with this number
   * has the same uid.
   */
  release(number: number): Promise<void>;

  /**
   * Unmakes this instance's slots, also half-made ones, that are neither in `known` nor held by
   * this object. Resolves with one sentence per slot, for the log.
   */
  reap(known: ReadonlySet<number>): Promise<string[]>;

  /** Unmakes idle slots and stops serving DNS; keeps claimed slots. */
  close(): Promise<void>;
}

/**
 * A VM's network could not be made. The message names the step and the output; operators see it.
 */
export class NetworkError extends Error {
  override readonly name = 'NetworkError';
}

export interface GuestCidr {
  text: string;
  firstAddress: number;
  prefixLength: number;
  /** Number of slots that fit; the last /30 stays unused. */
  slotCount: number;
}

/**
 * 10.0.0.0/8, 100.64.0.0/10, 172.16.0.0/12, 192.168.0.0/16: closed to guests, so that no guest
 * reaches another slot's address.
 */
const PRIVATE_RANGES = [
  { first: 0x0a_00_00_00, last: 0x0a_ff_ff_ff },
  { first: 0x64_40_00_00, last: 0x64_7f_ff_ff },
  { first: 0xac_10_00_00, last: 0xac_1f_ff_ff },
  { first: 0xc0_a8_00_00, last: 0xc0_a8_ff_ff },
];

/** Parses for example `10.200.0.0/16`. Throws {@link NetworkError} with the allowed values. */
export function parseGuestCidr(text: string): GuestCidr {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(text);
  const octets = match?.slice(1, 5).map(Number) ?? [];
  const prefixLength = Number(match?.[5]);
  const wrong = (what: string) =>
    new NetworkError(
      `The guest network "${text}" ${what}; it must be a private IPv4 block such as 10.200.0.0/16, from /15 to /28.`,
    );
  if (!match || octets.some((octet) => octet > 255)) throw wrong('is not an IPv4 block');
  if (prefixLength < 15 || prefixLength > 28) throw wrong('has a wrong size');
  const firstAddress = octets.reduce((sum, octet) => sum * 256 + octet, 0);
  if (firstAddress % 2 ** (32 - prefixLength) !== 0) throw wrong('has address bits set beyond its prefix');
  if (!PRIVATE_RANGES.some(({ first, last }) => firstAddress >= first && firstAddress <= last))
    throw wrong('is not private');
  return { text, firstAddress, prefixLength, slotCount: 2 ** (30 - prefixLength) - 1 };
}

export function addressText(address: number): string {
  return [address >>> 24, (address >>> 16) & 255, (address >>> 8) & 255, address & 255].join('.');
}

/** Prefix length of the network on a slot's veth pair. */
export const SLOT_PREFIX_LENGTH = 30;

/** Prefix length of the network between guest and TAP. */
export const TAP_PREFIX_LENGTH = GUEST_NETWORK.prefixLength;

export function namespaceName(number: number): string {
  return `${NAMESPACE_PREFIX}${number}`;
}

export function hostVethName(number: number): string {
  return `${HOST_VETH_PREFIX}${number}`;
}

export function slotOf(cidr: GuestCidr, number: number): Slot {
  if (!Number.isSafeInteger(number) || number < 0 || number >= cidr.slotCount)
    throw new NetworkError(`Slot ${number} is outside of ${cidr.text}, which holds slots 0 to ${cidr.slotCount - 1}.`);

  const subnet = cidr.firstAddress + number * 4;
  return {
    number,
    namespace: namespaceName(number),
    namespacePath: `/run/netns/${namespaceName(number)}`,
    tap: TAP_NAME,
    uid: FIRST_SLOT_UID + number,
    hostVeth: hostVethName(number),
    address: addressText(subnet + 2),
    hostAddress: addressText(subnet + 1),
  };
}
