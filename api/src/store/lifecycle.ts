// What the durable work asks of sandboxes' rows and of its own record of steps (schema `dbos`). SQL only, and reads only.
import { statusesThat, type SandboxStatus } from '@berth/contract/sandbox-state.ts';
import { sql } from 'kysely';
import type { Database } from './schema.ts';

/** A sandbox as far as its machine is concerned. */
export interface SandboxFence {
  id: string;
  epoch: number;
  status: SandboxStatus;
  hostId: string | null;
}

/** The host's sandboxes whose guest is believed to answer. */
export async function listAwakeOnHost(db: Database, hostId: string): Promise<SandboxFence[]> {
  return await db
    .selectFrom('sandbox')
    .select(['id', 'epoch', 'status', 'host_id as hostId'])
    .where('host_id', '=', hostId)
    .where('status', 'in', statusesThat('awake'))
    .execute();
}

/** Those of the given sandboxes that exist, deleted ones included. */
export async function findFences(db: Database, sandboxIds: string[]): Promise<Map<string, SandboxFence>> {
  if (sandboxIds.length === 0) return new Map();
  const rows = await db
    .selectFrom('sandbox')
    .select(['id', 'epoch', 'status', 'host_id as hostId'])
    .where('id', 'in', sandboxIds)
    .execute();
  return new Map(rows.map((row) => [row.id, row]));
}

/** Sandboxes with a transition under way for at least `quietMs`, whose step (named by `stepIds`) is neither waiting nor running. */
export async function listUnattended(db: Database, quietMs: number): Promise<SandboxFence[]> {
  return await db
    .selectFrom('sandbox')
    .select(['id', 'epoch', 'status', 'host_id as hostId'])
    .where('status', 'not in', statusesThat('settled'))
    .where('updated_at', '<', sql<Date>`now() - make_interval(secs => ${quietMs / 1_000})`)
    .where(
      sql<boolean>`not exists (
        select from dbos.workflow_status step
        where step.workflow_uuid in ('provision:' || sandbox.id || ':' || sandbox.epoch, 'destroy:' || sandbox.id || ':' || sandbox.epoch)
          and step.status in ('ENQUEUED', 'DELAYED', 'PENDING'))`,
    )
    .execute();
}

/** Executors other than `ownId` that are on record as running a step. */
export async function listExecutorsAtWork(db: Database, ownId: string): Promise<string[]> {
  const { rows } = await sql<{ executor_id: string }>`
    select distinct executor_id from dbos.workflow_status where status = 'PENDING' and executor_id <> ${ownId}`.execute(db);
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
