// Reserves room for a machine, within the transaction that creates, wakes or grows it: on any host
// for a new one, on its own host afterwards. The sandbox's row is the reservation; here is the lock
// under which it is found to fit.
import type { Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';
import { CodedError } from '../../rules/coded-error.ts';
import {
  describeShortage,
  describeShortageOn,
  hostsWithRoom,
  roomFor,
  type HostCandidate,
  type HostRoom,
} from '../../rules/hosts/placement.ts';
import { listHostsFree, lockHost, unlockHost, type HostFreeRow } from '../../store/hosts/hosts.ts';
import type { DatabaseTransaction, SandboxRow } from '../../store/database/schema.ts';

/** A host that was not heard of for longer gets no new machines. */
export const HOST_SEEN_WITHIN_MS = 30_000;
const RETRY_AFTER_SECONDS = 10;

/**
 * Chooses a host and locks its row: until the transaction ends nobody else reserves on it, and the
 * sandbox inserted with this host's id is the reservation. Throws `insufficient_capacity` or
 * `host_unavailable`.
 */
export async function reserveHost(trx: DatabaseTransaction, allocation: Allocation): Promise<string> {
  const needed = roomFor(allocation);
  const candidates = (await listHostsFree(trx, { seenWithinMs: HOST_SEEN_WITHIN_MS })).map(toCandidate);
  if (candidates.length === 0) {
    throw new CodedError('host_unavailable', 'no machine that runs sandboxes was heard of lately', {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    });
  }
  let latest = candidates;
  for (const { id } of hostsWithRoom(candidates, needed)) {
    await lockHost(trx, id);
    // Read again under the lock: others may have reserved on it since.
    const [row] = await listHostsFree(trx, { seenWithinMs: HOST_SEEN_WITHIN_MS, hostId: id });
    const candidate = row === undefined ? undefined : toCandidate(row);
    if (candidate !== undefined && hostsWithRoom([candidate], needed).length > 0) return id;
    if (candidate !== undefined) latest = latest.map((host) => (host.id === id ? candidate : host));
    // To hold it while waiting for the next could be a deadlock: another create may try the hosts
    // in another order.
    await unlockHost(trx);
  }
  throw new CodedError(
    'insufficient_capacity',
    `no host has room for this machine: it ${describeShortage(latest, needed)}`,
    {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    },
  );
}

/** `away`: the host was not heard of lately. `shortage` says for people what is not there. */
export type RoomOnHost = { kind: 'there' } | { kind: 'away' } | { kind: 'short'; shortage: string };

/**
 * Whether the sandbox's own host has room for what it needs; what the sandbox has reserved already
 * counts as free. The host's row is locked until the transaction ends, and the sandbox's row,
 * changed in it, is the reservation.
 */
export async function roomOnOwnHost(
  trx: DatabaseTransaction,
  sandbox: Pick<SandboxRow, 'id' | 'host_id'>,
  needed: Partial<HostRoom>,
  options: { evenAway?: boolean } = {},
): Promise<RoomOnHost> {
  if (sandbox.host_id === null) return { kind: 'away' };
  await lockHost(trx, sandbox.host_id);
  const [row] = await listHostsFree(trx, {
    hostId: sandbox.host_id,
    exceptSandboxId: sandbox.id,
    ...(options.evenAway === true ? {} : { seenWithinMs: HOST_SEEN_WITHIN_MS }),
  });
  if (row === undefined) return { kind: 'away' };
  const shortage = describeShortageOn(toCandidate(row).free, needed);
  return shortage === undefined ? { kind: 'there' } : { kind: 'short', shortage };
}

/** The refusal of what needs room that is not there. */
export function noRoom(room: Exclude<RoomOnHost, { kind: 'there' }>): CodedError {
  if (room.kind === 'away') {
    return new CodedError('host_unavailable', 'the host of the sandbox was not heard of lately', {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    });
  }
  return new CodedError(
    'insufficient_capacity',
    `the host of the sandbox has no room for its machine: it ${room.shortage}`,
    {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    },
  );
}

function toCandidate(row: HostFreeRow): HostCandidate {
  return { id: row.id, free: { vcpu: row.vcpu, memoryMib: row.memory_mib, diskGib: row.disk_gib } };
}
