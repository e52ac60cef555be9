// Rows of hosts, and the capacity that sandboxes reserve on them. SQL only;
// rules/hosts/placement.ts chooses the host.
import { statusesThat } from '@berth/contract/sandboxes/state.ts';
import { STORAGE_OVERHEAD_GIB } from '../../rules/hosts/placement.ts';
import { sql, type RawBuilder } from 'kysely';
import type { Database, DatabaseTransaction, Tables } from '../database/schema.ts';

/** Limit of {@link listLeaving}. */
const LEAVING_MAX = 16;

/** A host's report about itself. */
interface HostReport {
  id: string;
  url: string;
  startId: string;
  driver: string;
  accelerator: string;
  capacity: { vcpu: number; memoryMib: number; diskGib: number };
  reserved: { vcpu: number; memoryMib: number; diskGib: number };
  /** Largest VM size the host supports, regardless of free capacity. */
  largest?: { vcpu: number; memoryMib: number; diskGib: number };
  pool?: { ready: number; target: number };
}

/** Stores a host's report and sets its last heartbeat to now. */
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
    largest_vcpu: report.largest?.vcpu ?? null,
    largest_memory_mib: report.largest?.memoryMib ?? null,
    largest_disk_gib: report.largest?.diskGib ?? null,
    pool_ready: report.pool?.ready ?? null,
    pool_target: report.pool?.target ?? null,
    last_seen_at: sql<Date>`now()`,
  };
  await db
    .insertInto('host')
    .values({ id: report.id, ...seen })
    .onConflict((conflict) => conflict.column('id').doUpdateSet(seen))
    .execute();
}

/** Hosts seen at this address, with the time since their last heartbeat by the database clock. */
export async function listHostsAt(
  db: Database,
  url: string,
): Promise<{ id: string; lastSeenAt: Date; silentMs: number }[]> {
  return await db
    .selectFrom('host')
    .select([
      'id',
      'last_seen_at as lastSeenAt',
      sql<number>`(extract(epoch from now() - last_seen_at) * 1000)::float8`.as('silentMs'),
    ])
    .where('url', '=', url)
    .execute();
}

/** Time of the host's last heartbeat; undefined for an unknown host. */
export async function findHostSeen(db: Database, hostId: string): Promise<Date | undefined> {
  const row = await db.selectFrom('host').select('last_seen_at').where('id', '=', hostId).executeTakeFirst();
  return row?.last_seen_at;
}

/** Largest VM size the host supports, regardless of free capacity. */
export async function findLargest(
  db: Database,
  hostId: string,
): Promise<{ vcpu: number; memoryMib: number; diskGib: number } | undefined> {
  return await db
    .selectFrom('host')
    .select([
      sql<number>`coalesce(largest_vcpu, capacity_vcpu)`.as('vcpu'),
      sql<number>`coalesce(largest_memory_mib, capacity_memory_mib)`.as('memoryMib'),
      sql<number>`coalesce(largest_disk_gib, capacity_disk_gib)`.as('diskGib'),
    ])
    .where('id', '=', hostId)
    .executeTakeFirst();
}

export interface HostFreeRow {
  id: string;
  vcpu: number;
  memory_mib: number;
  disk_gib: number;
}

interface HostFreeFilter {
  /** Maximum age of the last heartbeat; absent: all hosts. */
  seenWithinMs?: number;
  /** Limits the list to this host. */
  hostId?: string;
  /** Counts this sandbox's reservation as free. */
  exceptSandboxId?: string;
}

/**
 * Reservations, by sandbox. A sandbox with a VM (`machine`) reserves its allocation, or the pending
 * one if larger and a step is resizing to it (`resizing`). A sandbox without a VM reserves disk
 * space alone, unless nothing of it is left. Disk space is that of the host protocol's
 * `storageGib`: disk and snapshot. A sandbox being destroyed keeps the reservation it had when that
 * began.
 */
export function reservations(exceptSandboxId: string | null = null): RawBuilder<unknown> {
  const of = (amount: 'vcpu' | 'memory_gb' | 'disk_gb'): RawBuilder<unknown> =>
    sql`greatest(s.${sql.ref(`allocated_${amount}`)}, case when s.resizing then s.${sql.ref(`pending_${amount}`)} end)`;
  return sql`
    select s.host_id,
      s.status = any(${statusesThat('reservesCompute')})
        and coalesce(s.destroy_holds, 'machine') = 'machine' as machine,
      ${of('vcpu')} as vcpu,
      ${of('memory_gb')} as memory_gb,
      ${of('disk_gb')} + ${of('memory_gb')} + ${STORAGE_OVERHEAD_GIB}::int as storage_gib
    from sandbox s
    where s.status <> 'deleted' and s.destroy_holds is distinct from 'nothing'
      and s.id is distinct from ${exceptSandboxId}::text
      and (s.status = any(${statusesThat('reservesCompute')})
        or (s.status = any(${statusesThat('reservesDisk')}) and s.wakes_from is not null))`;
}

/** Free capacity of hosts: capacity minus reservations, at most the host's largest VM. */
export async function listHostsFree(db: Database, filter: HostFreeFilter): Promise<HostFreeRow[]> {
  const seenWithinMs = filter.seenWithinMs ?? null;
  const hostId = filter.hostId ?? null;
  const result = await sql<HostFreeRow>`
    with held as (${reservations(filter.exceptSandboxId)})
    select h.id,
      least(h.capacity_vcpu - coalesce(sum(held.vcpu) filter (where held.machine), 0), h.largest_vcpu)::int as vcpu,
      least(h.capacity_memory_mib - 1024 * coalesce(sum(held.memory_gb) filter (where held.machine), 0),
        h.largest_memory_mib)::int as memory_mib,
      (h.capacity_disk_gib
        - coalesce(sum(held.storage_gib), 0))::int as disk_gib
    from host h left join held on held.host_id = h.id
    where (${seenWithinMs}::float8 is null
      or h.last_seen_at > now() - ${seenWithinMs}::float8 * interval '1 millisecond')
      and (${hostId}::text is null or h.id = ${hostId})
    group by h.id`.execute(db);
  return result.rows;
}

/** Report of a host about its VMs. */
export async function findVmSupply(
  db: Database,
  hostId: string,
): Promise<Pick<Tables['host'], 'accelerator' | 'pool_ready'> | undefined> {
  return await db.selectFrom('host').select(['accelerator', 'pool_ready']).where('id', '=', hostId).executeTakeFirst();
}

/** Sandboxes whose sleep or destroy in progress may free capacity, oldest first. */
export async function listLeaving(db: Database): Promise<string[]> {
  const rows = await db
    .selectFrom('sandbox')
    .select('id')
    .where('status', 'in', ['sleeping', 'destroying'])
    .where(sql<boolean>`destroy_holds is distinct from 'nothing'`)
    .orderBy('status_changed_at')
    .limit(LEAVING_MAX)
    .execute();
  return rows.map(({ id }) => id);
}

/** Locks a host's row until commit or `unlockHost`. Serialises reservations on the host. */
export async function lockHost(trx: DatabaseTransaction, hostId: string): Promise<void> {
  await sql`savepoint host_locked`.execute(trx);
  await trx.selectFrom('host').select('id').where('id', '=', hostId).forNoKeyUpdate().executeTakeFirstOrThrow();
}

/** Releases the last locked row and rolls back everything the transaction did since. */
export async function unlockHost(trx: DatabaseTransaction): Promise<void> {
  await sql`rollback to savepoint host_locked`.execute(trx);
}
