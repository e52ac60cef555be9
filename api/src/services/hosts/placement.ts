// Reserves host capacity inside the transaction that creates, wakes or resizes a sandbox: on any
// host for a new sandbox, on its own host otherwise. The sandbox row is the reservation; the host
// row lock serialises reservations.
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

/** Hosts without a heartbeat for this long receive no new sandboxes. */
export const HOST_SEEN_WITHIN_MS = 30_000;
const RETRY_AFTER_SECONDS = 10;

/**
 * Chooses a host and locks its row until the transaction ends. Inserting the sandbox with this
 * host's id makes the reservation. Throws `insufficient_capacity` or `host_unavailable`.
 */
export async function reserveHost(trx: DatabaseTransaction, allocation: Allocation): Promise<string> {
  const needed = roomFor(allocation);
  const candidates = (await listHostsFree(trx, { seenWithinMs: HOST_SEEN_WITHIN_MS })).map(toCandidate);
  if (candidates.length === 0) {
    throw new CodedError(
      'host_unavailable',
      `no host is available: no heartbeat within ${HOST_SEEN_WITHIN_MS / 1_000} s`,
      {
        retryAfterSeconds: RETRY_AFTER_SECONDS,
      },
    );
  }
  let latest = candidates;
  for (const { id } of hostsWithRoom(candidates, needed)) {
    await lockHost(trx, id);
    // Read again under the lock: concurrent reservations may have been made.
    const [row] = await listHostsFree(trx, { seenWithinMs: HOST_SEEN_WITHIN_MS, hostId: id });
    const candidate = row === undefined ? undefined : toCandidate(row);
    if (candidate !== undefined && hostsWithRoom([candidate], needed).length > 0) return id;
    if (candidate !== undefined) latest = latest.map((host) => (host.id === id ? candidate : host));
    // Release before locking the next host: another create may lock hosts in a different order and
    // deadlock.
    await unlockHost(trx);
  }
  throw new CodedError(
    'insufficient_capacity',
    `no host has enough capacity: the sandbox ${describeShortage(latest, needed)}`,
    {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    },
  );
}

/** `away`: no recent heartbeat. `shortage`: the missing capacity, in words. */
export type RoomOnHost = { kind: 'there' } | { kind: 'away' } | { kind: 'short'; shortage: string };

/**
 * Checks whether the sandbox's own host has the capacity; the sandbox's current reservation counts
 * as free. Locks the host row until the transaction ends. Updating the sandbox row in it makes the
 * reservation.
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

/** Error for missing capacity. */
export function capacityError(room: Exclude<RoomOnHost, { kind: 'there' }>): CodedError {
  if (room.kind === 'away') {
    return new CodedError(
      'host_unavailable',
      `the sandbox's host is not available: no heartbeat within ${HOST_SEEN_WITHIN_MS / 1_000} s`,
      {
        retryAfterSeconds: RETRY_AFTER_SECONDS,
      },
    );
  }
  return new CodedError(
    'insufficient_capacity',
    `the sandbox's host has too little capacity: the sandbox ${room.shortage}`,
    {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    },
  );
}

function toCandidate(row: HostFreeRow): HostCandidate {
  return { id: row.id, free: { vcpu: row.vcpu, memoryMib: row.memory_mib, diskGib: row.disk_gib } };
}
