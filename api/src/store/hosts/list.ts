// Lists hosts with the capacity that sandboxes reserve, and the sandboxes of a host.
import { sql, type Selectable } from 'kysely';
import type { SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import type { PageRequest, Slice } from '../../rules/page.ts';
import { selectSlice } from '../database/pages.ts';
import type { Database } from '../database/schema.ts';
import type { HostTable } from '../database/tables-sandboxes.ts';
import { reservations } from './hosts.ts';

interface Held {
  host_id: string;
  held_vcpu: number;
  held_memory_mib: number;
  held_disk_gib: number;
  vms: number;
  asleep: number;
}

/** Amounts are null for a host without sandboxes. */
export type ListedHostRow = Pick<
  Selectable<HostTable>,
  | 'id'
  | 'accelerator'
  | 'capacity_vcpu'
  | 'capacity_memory_mib'
  | 'capacity_disk_gib'
  | 'pool_ready'
  | 'pool_target'
  | 'last_seen_at'
  | 'created_at'
> & { available: boolean } & { [name in Exclude<keyof Held, 'host_id'>]: number | null };

/**
 * Hosts, oldest first, or the one with the id. `available`: seen within the time, by the clock of
 * the database.
 */
export async function listHosts(
  db: Database,
  { seenWithinMs, hostId }: { seenWithinMs: number; hostId?: string },
  page: PageRequest,
): Promise<Slice<ListedHostRow>> {
  const held = sql<Held>`(
    select host_id,
      coalesce(sum(vcpu) filter (where machine), 0)::int as held_vcpu,
      (1024 * coalesce(sum(memory_gb) filter (where machine), 0))::int as held_memory_mib,
      sum(storage_gib)::int as held_disk_gib,
      (count(*) filter (where machine))::int as vms,
      (count(*) filter (where not machine))::int as asleep
    from (${reservations()}) sandbox group by host_id)`;
  let query = db
    .selectFrom('host')
    .leftJoin(held.as('held'), 'held.host_id', 'host.id')
    .select(['host.id', 'accelerator', 'capacity_vcpu', 'capacity_memory_mib', 'capacity_disk_gib'])
    .select(['pool_ready', 'pool_target', 'last_seen_at', 'host.created_at'])
    .select(['held_vcpu', 'held_memory_mib', 'held_disk_gib', 'vms', 'asleep'])
    .select(sql<boolean>`last_seen_at > now() - ${seenWithinMs}::float8 * interval '1 millisecond'`.as('available'));
  if (hostId !== undefined) query = query.where('host.id', '=', hostId);
  return await selectSlice(query, { at: 'host.created_at', tie: 'host.id', direction: 'asc' }, page);
}

export interface HostSandboxRow {
  id: string;
  org_id: string;
  status: SandboxStatus;
  status_changed_at: Date;
  allocated_vcpu: number;
  allocated_memory_gb: number;
  allocated_disk_gb: number;
  created_at: Date;
}

/** Undeleted sandboxes of a host, newest first. */
export async function listHostSandboxes(
  db: Database,
  hostId: string,
  page: PageRequest,
): Promise<Slice<HostSandboxRow>> {
  const query = db
    .selectFrom('sandbox')
    .select(['id', 'org_id', 'status', 'status_changed_at', 'created_at'])
    .select(['allocated_vcpu', 'allocated_memory_gb', 'allocated_disk_gb'])
    .where('host_id', '=', hostId)
    .where('status', '<>', 'deleted');
  return await selectSlice(query, { at: 'created_at', tie: 'id', direction: 'desc' }, page);
}
