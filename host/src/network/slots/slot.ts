// What a network slot is, and the verbs of whoever hands slots out. Names and addresses follow from
// the slot's number alone; nothing here touches the machine.
import { GUEST_NETWORK } from '@berth/protocol/guest.ts';

/** The TAP device of every slot, inside the slot's namespace. */
export const TAP_NAME = 'tap0';

/** The slot's end of its veth pair, inside the slot's namespace. */
export const INNER_VETH_NAME = 'up0';

/**
 * MAC of every slot's TAP end, so that the neighbour entry of the gateway which a guest brings
 * along from the template is right in every slot. A template must be booted with the same one.
 */
export const GATEWAY_MAC = '52:54:00:b0:00:02';

/**
 * Names of the slots' namespaces and of the host's ends of their veth pairs begin so; the number
 * follows. Nothing else on a machine may be called so.
 */
export const NAMESPACE_PREFIX = 'berth';
export const HOST_VETH_PREFIX = 'bv';

/**
 * First uid of the slots: slot n's QEMU runs as this plus n. All of them lie between the uids of
 * users (below 65,536) and those that Debian hands out to users' own containers (from 100,000 on,
 * /etc/login.defs): whoever has such a uid could end a VM, and would be ended with it.
 */
export const FIRST_SLOT_UID = 66_000;

/** No slot of any network has this uid or one beyond. */
export const END_OF_SLOT_UIDS = 100_000;

/**
 * One place for a VM on the machine's network: a namespace with a TAP, joined to the root namespace
 * by a veth pair of its own.
 */
export interface Slot {
  number: number;
  /** Name of the network namespace, for `ip netns exec`. */
  namespace: string;
  /**
   * The same as a path, for `nsenter --net=PATH` (which, unlike `ip netns exec`, leaves the mounts
   * alone).
   */
  namespacePath: string;
  /**
   * Name of the TAP device inside the namespace. It exists, is up and belongs to `uid`: QEMU opens
   * it with `script=no,downscript=no`.
   */
  tap: string;
  /** The slot's uid and gid, for the VM's QEMU process. */
  uid: number;
  /** The host's end of the veth pair, in the root namespace. */
  hostVeth: string;
  /**
   * Where the host daemon dials the guest, from the root namespace: any port is led to the guest's
   * own address.
   */
  address: string;
  /** Address of the host's end of the pair: the only peer that reaches `address`. */
  hostAddress: string;
}

/**
 * Slots made ahead of time. Verbs are idempotent; none needs the daemon that made a slot to be the
 * one that frees it.
 */
export interface Network {
  /**
   * Makes the machine ready (forwarding, the firewall of the root namespace) and the first idle
   * slots. Resolves with a sentence for each setting of the machine that was changed. Rejects with
   * {@link NetworkError}.
   */
  prepare(): Promise<string[]>;

  /**
   * Takes an idle slot; the claim is in the machine's registry when this resolves. Waits for the
   * pool when it is empty. Rejects with {@link NetworkError} when no slot can be made, with the
   * signal's reason when it aborts.
   */
  claim(vmId: string, signal: AbortSignal): Promise<Slot>;

  /**
   * Takes over the claimed slot of an earlier daemon of this instance and serves its guest. Rejects
   * with {@link NetworkError} when it is gone.
   */
  adopt(number: number): Promise<Slot>;

  /**
   * Unmakes a slot: the namespace has no name, no way out and no way in when this resolves.
   * Idempotent; leaves slots of other instances alone. End the processes of the slot first: the
   * next VM with this number has the same uid.
   */
  release(number: number): Promise<void>;

  /**
   * Unmakes what this instance has on the machine, half made or whole, that is neither in `known`
   * nor held by this object. Resolves with a sentence for each, for the log.
   */
  reap(known: ReadonlySet<number>): Promise<string[]>;

  /** Unmakes idle slots and stops serving DNS; claimed slots stay. */
  close(): Promise<void>;
}

/**
 * The network of a VM could not be made. The message names the step and what was seen; it is shown
 * to the operator.
 */
export class NetworkError extends Error {
  override readonly name = 'NetworkError';
}

/** A block of IPv4 addresses that guests' slots are cut from. */
export interface GuestCidr {
  text: string;
  firstAddress: number;
  prefixLength: number;
  /** How many slots fit: the last /30 stays unused. */
  slotCount: number;
}

/**
 * 10.0.0.0/8, 100.64.0.0/10, 172.16.0.0/12, 192.168.0.0/16: closed to guests, so that no slot's own
 * address is open to another.
 */
const PRIVATE_RANGES = [
  { first: 0x0a_00_00_00, last: 0x0a_ff_ff_ff },
  { first: 0x64_40_00_00, last: 0x64_7f_ff_ff },
  { first: 0xac_10_00_00, last: 0xac_1f_ff_ff },
  { first: 0xc0_a8_00_00, last: 0xc0_a8_ff_ff },
];

/** Parses for example `10.200.0.0/16`. Throws {@link NetworkError} that says what is allowed. */
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

/** Dotted text of an address given as a number. */
export function addressText(address: number): string {
  return [address >>> 24, (address >>> 16) & 255, (address >>> 8) & 255, address & 255].join('.');
}

/** Prefix length of the network between the two ends of a slot's veth pair. */
export const SLOT_PREFIX_LENGTH = 30;

/** Prefix length of the network between guest and TAP. */
export const TAP_PREFIX_LENGTH = GUEST_NETWORK.prefixLength;

/** Name of the namespace of a slot. */
export function namespaceName(number: number): string {
  return `${NAMESPACE_PREFIX}${number}`;
}

/** Name of the host's end of a slot's veth pair. */
export function hostVethName(number: number): string {
  return `${HOST_VETH_PREFIX}${number}`;
}

/** Everything that follows from a slot's number. */
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
