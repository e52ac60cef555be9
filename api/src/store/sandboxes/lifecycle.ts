// Queries of the durable work on sandbox rows: fences, and sandboxes without their step. Read-only
// SQL.
import type { Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';
import { statusesThat, type SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { sql, type SelectQueryBuilder } from 'kysely';
import { allocationOf, type WakeSource } from './sandboxes.ts';
import type { Database, SandboxRow, Tables } from '../database/schema.ts';

/** Columns of a sandbox that concern its VM. */
export interface SandboxFence {
  id: string;
  epoch: number;
  status: SandboxStatus;
  hostId: string | null;
  mode: string;
  wakesFrom: WakeSource | null;
  reasonCode: string | null;
  resizing: boolean;
  egressRevision: number;
  allocation: Allocation;
}

/** Sandboxes that have a VM, or the remains of one, on the host. */
export async function listOnHost(db: Database, hostId: string): Promise<SandboxFence[]> {
  const rows = await selectFences(db).where('host_id', '=', hostId).where('status', '<>', 'deleted').execute();
  return rows.map(toFence);
}

/** Sandboxes on the host whose guest should be reachable. */
export async function listAwakeOnHost(db: Database, hostId: string): Promise<SandboxFence[]> {
  const rows = await selectFences(db)
    .where('host_id', '=', hostId)
    .where('status', 'in', statusesThat('awake'))
    .execute();
  return rows.map(toFence);
}

/** The given sandboxes that exist, including deleted ones. */
export async function findFences(db: Database, sandboxIds: string[]): Promise<Map<string, SandboxFence>> {
  if (sandboxIds.length === 0) return new Map();
  const rows = await selectFences(db).where('id', 'in', sandboxIds).execute();
  return new Map(rows.map((row) => [row.id, toFence(row)]));
}

/** Sandboxes in a transition for at least `quietMs` without a step (`kind:id:epoch`). */
export async function listUnattended(
  db: Database,
  quietMs: number,
  stepKinds: readonly string[],
): Promise<SandboxFence[]> {
  const rows = await selectFences(db)
    // Lets the planner use a partial index over living sandboxes. Deleted rows stay and accumulate.
    .where('status', '<>', 'deleted')
    .where((row) => row.or([row('status', 'not in', statusesThat('settled')), row('resizing', '=', true)]))
    .where('updated_at', '<', sql<Date>`now() - make_interval(secs => ${quietMs / 1_000})`)
    .where(
      sql<boolean>`not exists (
        select from durable_step step
        where step.id in (
          select kind || ':' || sandbox.id || ':' || sandbox.epoch from unnest(${stepKinds}::text[]) kind))`,
    )
    .execute();
  return rows.map(toFence);
}

/**
 * Awake sandboxes with a clone pending for at least `quietMs` without a step (`clone:id:epoch`).
 */
export async function listUnattendedClones(db: Database, quietMs: number, stepKind: string): Promise<string[]> {
  const rows = await db
    .selectFrom('sandbox')
    .select('id')
    .where('clone_status', '=', 'pending')
    // Matches the partial index.
    .where('status', '<>', 'deleted')
    .where('status', 'in', statusesThat('awake'))
    .where('updated_at', '<', sql<Date>`now() - make_interval(secs => ${quietMs / 1_000})`)
    .where(
      sql<boolean>`not exists (
        select from durable_step step
        where step.id = ${stepKind} || ':' || sandbox.id || ':' || sandbox.clone_epoch)`,
    )
    .execute();
  return rows.map((row) => row.id);
}

type FenceRow = Pick<SandboxRow, (typeof FENCE_COLUMNS)[number]>;

const FENCE_COLUMNS = [
  'id',
  'epoch',
  'status',
  'host_id',
  'mode',
  'wakes_from',
  'status_reason_code',
  'resizing',
  'egress_revision',
  'allocated_vcpu',
  'allocated_memory_gb',
  'allocated_disk_gb',
] as const;

function selectFences(db: Database): SelectQueryBuilder<Tables, 'sandbox', FenceRow> {
  return db.selectFrom('sandbox').select(FENCE_COLUMNS);
}

function toFence(row: FenceRow): SandboxFence {
  return {
    id: row.id,
    epoch: row.epoch,
    status: row.status,
    hostId: row.host_id,
    mode: row.mode,
    wakesFrom: row.wakes_from,
    reasonCode: row.status_reason_code,
    resizing: row.resizing,
    egressRevision: row.egress_revision,
    allocation: allocationOf(row),
  };
}
