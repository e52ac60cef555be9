// The rows of hosts, and how much of each is reserved by sandboxes. SQL only; which host is chosen is said in rules/placement.ts.
import { statusesThat } from '@berth/contract/sandbox-state.ts';
import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from './schema.ts';

/** What a host said of itself. */
export interface HostReport {
  id: string;
  url: string;
  startId: string;
  driver: string;
  accelerator: string;
  capacity: { vcpu: number; memoryMib: number; diskGib: number };
  reserved: { vcpu: number; memoryMib: number; diskGib: number };
}

/** Notes a host's answer, seen now. */
export async function upsertHost(db: Database, report: HostReport): Promise<void> {
  const seen = {
    url: report.url,
    start_id: report.startId,
    driver: report.driver,
    accelerator: report.accelerator,
    capacity_vcpu: report.capacity.vcpu,
    capacity_memory_mib: report.capacity.memoryMib,
    capacity_disk_gib: report.capacity.diskGib,
    reserved_vcpu: report.reserved.vcpu,
    reserved_memory_mib: report.reserved.memoryMib,
    reserved_disk_gib: report.reserved.diskGib,
    last_seen_at: sql<Date>`now()`,
  };
  await db
    .insertInto('host')
    .values({ id: report.id, ...seen })
    .onConflict((conflict) => conflict.column('id').doUpdateSet(seen))
    .execute();
}

export interface HostFreeRow {
  id: string;
  vcpu: number;
  memory_mib: number;
  disk_gib: number;
}

/** What is not reserved on the hosts seen lately, or on one of them: capacity less the allocations of all sandboxes that hold a machine. */
export async function listHostsFree(db: Database, seenWithinMs: number, hostId?: string): Promise<HostFreeRow[]> {
  const holding = statusesThat('holdsMachine');
  const result = await sql<HostFreeRow>`
    select h.id,
      (h.capacity_vcpu - coalesce(sum(s.allocated_vcpu), 0))::int as vcpu,
      (h.capacity_memory_mib - 1024 * coalesce(sum(s.allocated_memory_gb), 0))::int as memory_mib,
      (h.capacity_disk_gib - coalesce(sum(s.allocated_disk_gb), 0))::int as disk_gib
    from host h left join sandbox s on s.host_id = h.id and s.status <> 'deleted' and s.status = any(${holding})
    where h.last_seen_at > now() - ${seenWithinMs} * interval '1 millisecond' and (${hostId ?? null}::text is null or h.id = ${hostId ?? null})
    group by h.id`.execute(db);
  return result.rows;
}

/** Locks a host's row until the transaction ends, or `unlockHost` is called: reservations on one host are made one after another. */
export async function lockHost(trx: DatabaseTransaction, hostId: string): Promise<void> {
  await sql`savepoint host_locked`.execute(trx);
  await trx.selectFrom('host').select('id').where('id', '=', hostId).forNoKeyUpdate().executeTakeFirstOrThrow();
}

/** Lets go of the row locked last, and undoes whatever the transaction did since. */
export async function unlockHost(trx: DatabaseTransaction): Promise<void> {
  await sql`rollback to savepoint host_locked`.execute(trx);
}
