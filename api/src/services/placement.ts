// Reserves room for a machine on a host, within the transaction that creates the sandbox.
import type { Allocation } from '@berth/contract/machine-sizes.ts';
import { CodedError } from '../rules/coded-error.ts';
import { describeShortage, hostsWithRoom, roomFor, type HostCandidate } from '../rules/placement.ts';
import { listHostsFree, lockHost, unlockHost, type HostFreeRow } from '../store/hosts.ts';
import type { DatabaseTransaction } from '../store/schema.ts';

/** A host that was not heard of for longer gets no new machines. */
export const HOST_SEEN_WITHIN_MS = 30_000;
const RETRY_AFTER_SECONDS = 10;

/**
 * Chooses a host and locks its row: until the transaction ends nobody else reserves on it, and the sandbox inserted with this host's id
 * is the reservation. Throws `insufficient_capacity` or `host_unavailable`.
 */
export async function reserveHost(trx: DatabaseTransaction, allocation: Allocation): Promise<string> {
  const needed = roomFor(allocation);
  const candidates = (await listHostsFree(trx, HOST_SEEN_WITHIN_MS)).map(toCandidate);
  if (candidates.length === 0) {
    throw new CodedError('host_unavailable', 'no machine that runs sandboxes was heard of lately', {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    });
  }
  let latest = candidates;
  for (const { id } of hostsWithRoom(candidates, needed)) {
    await lockHost(trx, id);
    // Read again under the lock: others may have reserved on it since.
    const [row] = await listHostsFree(trx, HOST_SEEN_WITHIN_MS, id);
    const candidate = row === undefined ? undefined : toCandidate(row);
    if (candidate !== undefined && hostsWithRoom([candidate], needed).length > 0) return id;
    if (candidate !== undefined) latest = latest.map((host) => (host.id === id ? candidate : host));
    // To hold it while waiting for the next could be a deadlock: another create may try the hosts in another order.
    await unlockHost(trx);
  }
  throw new CodedError('insufficient_capacity', `no host has room for this machine: it ${describeShortage(latest, needed)}`, {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
}

function toCandidate(row: HostFreeRow): HostCandidate {
  return { id: row.id, free: { vcpu: row.vcpu, memoryMib: row.memory_mib, diskGib: row.disk_gib } };
}
