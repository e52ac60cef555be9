// Egress policy of a VM: the destinations that its guest may contact. Enforced by the host daemon,
// outside the guest.
import { z } from 'zod';

/** Entries and lengths of a policy, and of what a host stores for it. */
export const EGRESS_LIMITS = {
  names: 64,
  nameCharacters: 253,
  ranges: 64,
  ports: 32,
  deniedDestinations: 5,
} as const;

/** A DNS name in lower case, without a trailing dot; `*.` in front: every name below it. */
const EGRESS_NAME =
  /^(?:\*\.)?(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*(?!\d+$)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

/** An IPv4 block without address bits beyond its prefix. */
const egressRange = z.string().max(18).refine(isBlock, 'must be an IPv4 range such as 198.51.100.0/24');

export const egressPolicy = z.strictObject({
  /** Raised by each change; a host ignores a policy older than the VM's. */
  revision: z.int().min(0),
  /**
   * `open`: everything but the closed ranges. `none`: nothing. `allow`: the addresses of `names` as
   * resolved by the relay, and `ranges`; on `ports` by TCP and UDP, or without ports by any
   * protocol.
   */
  mode: z.enum(['open', 'none', 'allow']),
  names: z.array(z.string().max(EGRESS_LIMITS.nameCharacters).regex(EGRESS_NAME)).max(EGRESS_LIMITS.names),
  ranges: z.array(egressRange).max(EGRESS_LIMITS.ranges),
  ports: z.array(z.int().min(1).max(65_535)).max(EGRESS_LIMITS.ports),
});
export type EgressPolicy = z.infer<typeof egressPolicy>;

/** Policy of a VM whose spec has none. */
export const OPEN_EGRESS: EgressPolicy = { revision: 0, mode: 'open', names: [], ranges: [], ports: [] };

/** Attempts of a guest to reach closed destinations, since the host began to count. */
export const egressDenied = z.object({
  /** Identifies the count: another time means that it started anew. */
  sinceUnixMs: z.int(),
  /** Refused packets and DNS queries. */
  count: z.int().min(1),
  /** Names and IPv4 addresses of recent attempts, newest first. */
  destinations: z.array(z.string().max(EGRESS_LIMITS.nameCharacters)).max(EGRESS_LIMITS.deniedDestinations),
});
export type EgressDenied = z.infer<typeof egressDenied>;

function isBlock(text: string): boolean {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(text);
  if (match === null) return false;
  const octets = match.slice(1, 5);
  const prefix = Number(match[5]);
  if (octets.some((octet) => Number(octet) > 255 || octet !== String(Number(octet)))) return false;
  const address = octets.reduce((sum, octet) => sum * 256 + Number(octet), 0);
  return prefix <= 32 && match[5] === String(prefix) && address % 2 ** (32 - prefix) === 0;
}
