// What the durable work asks of sandboxes' rows and of its own record of steps (schema `dbos`). SQL
// only, and reads only.
import type { Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';
import { statusesThat, type SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { sql, type SelectQueryBuilder } from 'kysely';
import { allocationOf, type WakeSource } from './sandboxes.ts';
import type { Database, SandboxRow, Tables } from '../database/schema.ts';

/** A sandbox as far as its machine is concerned. */
export interface SandboxFence {
  id: string;
  epoch: number;
  status: SandboxStatus;
  hostId: string | null;
  mode: string;
  wakesFrom: WakeSource | null;
  reasonCode: string | null;
  resizing: boolean;
  allocation: Allocation;
}

/** The host's sandboxes that have a machine, or what is left of one, there. */
export async function listOnHost(db: Database, hostId: string): Promise<SandboxFence[]> {
  const rows = await selectFences(db).where('host_id', '=', hostId).where('status', '<>', 'deleted').execute();
  return rows.map(toFence);
}

/** The host's sandboxes whose guest is believed to answer. */
export async function listAwakeOnHost(db: Database, hostId: string): Promise<SandboxFence[]> {
  const rows = await selectFences(db)
    .where('host_id', '=', hostId)
    .where('status', 'in', statusesThat('awake'))
    .execute();
  return rows.map(toFence);
}

/** Those of the given sandboxes that exist, deleted ones included. */
export async function findFences(db: Database, sandboxIds: string[]): Promise<Map<string, SandboxFence>> {
  if (sandboxIds.length === 0) return new Map();
  const rows = await selectFences(db).where('id', 'in', sandboxIds).execute();
  return new Map(rows.map((row) => [row.id, toFence(row)]));
}

/**
 * Sandboxes with something under way for at least `quietMs`, whose step (`kind:id:epoch`) is
 * neither waiting nor running.
 */
export async function listUnattended(
  db: Database,
  quietMs: number,
  stepKinds: readonly string[],
): Promise<SandboxFence[]> {
  const rows = await selectFences(db)
    // Says to the planner that an index over living sandboxes will do: deleted ones stay, and
    // become many.
    .where('status', '<>', 'deleted')
    .where((row) => row.or([row('status', 'not in', statusesThat('settled')), row('resizing', '=', true)]))
    .where('updated_at', '<', sql<Date>`now() - make_interval(secs => ${quietMs / 1_000})`)
    .where(
      sql<boolean>`not exists (
        select from dbos.workflow_status step, unnest(${stepKinds}::text[]) kind
        where step.workflow_uuid = kind || ':' || sandbox.id || ':' || sandbox.epoch
          and step.status in ('ENQUEUED', 'DELAYED', 'PENDING'))`,
    )
    .execute();
  return rows.map(toFence);
}

/**
 * Awake sandboxes whose clone is not over, and whose step (`clone:id:epoch`) is neither waiting nor
 * running, for at least `quietMs`.
 */
export async function listUnattendedClones(db: Database, quietMs: number, stepKind: string): Promise<string[]> {
  const rows = await db
    .selectFrom('sandbox')
    .select('id')
    .where('clone_status', '=', 'pending')
    // As in the index over them.
    .where('status', '<>', 'deleted')
    .where('status', 'in', statusesThat('awake'))
    .where('updated_at', '<', sql<Date>`now() - make_interval(secs => ${quietMs / 1_000})`)
    .where(
      sql<boolean>`not exists (
        select from dbos.workflow_status step
        where step.workflow_uuid = ${stepKind} || ':' || sandbox.id || ':' || sandbox.clone_epoch and step.status in ('ENQUEUED', 'DELAYED', 'PENDING'))`,
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
    allocation: allocationOf(row),
  };
}

/** Executors other than `ownId` that are on record as running a step. */
export async function listExecutorsAtWork(db: Database, ownId: string): Promise<string[]> {
  const { rows } = await sql<{ executor_id: string }>`
    select distinct executor_id from dbos.workflow_status where status = 'PENDING' and executor_id <> ${ownId}`.execute(
    db,
  );
  return rows.map((row) => row.executor_id);
}

/** Steps on record as run by this executor that have not been written to for `quietMs`. */
export async function listQuietSteps(db: Database, executorId: string, quietMs: number): Promise<string[]> {
  const { rows } = await sql<{ workflow_uuid: string }>`
    select workflow_uuid from dbos.workflow_status
    where status = 'PENDING' and executor_id = ${executorId}
      and updated_at < (extract(epoch from now()) * 1000)::bigint - ${quietMs}`.execute(db);
  return rows.map((row) => row.workflow_uuid);
}

/** Steps that ended longer than `ageMs` ago, oldest first, at most `limit`. */
export async function listEndedSteps(db: Database, ageMs: number, limit: number): Promise<string[]> {
  const { rows } = await sql<{ workflow_uuid: string }>`
    select workflow_uuid from dbos.workflow_status
    where status not in ('ENQUEUED', 'DELAYED', 'PENDING')
      and updated_at < (extract(epoch from now()) * 1000)::bigint - ${ageMs}
    order by updated_at limit ${limit}`.execute(db);
  return rows.map((row) => row.workflow_uuid);
}
