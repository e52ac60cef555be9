// Signs of use in sandbox rows, and candidates for auto-sleep. SQL only;
// rules/sandboxes/idleness.ts defines idle.
import type { PersistencePolicy } from '@berth/contract/sandboxes/fields.ts';
import type { UseSignal } from '@berth/contract/sandboxes/sandboxes.ts';
import { statusesThat, type SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { sql } from 'kysely';
import type { Database } from '../database/schema.ts';

/**
 * Records a use of an awake sandbox, at most once per `quietMs`; resolves with whether the sandbox
 * was awake. Waits for a concurrent change of the row: after `true`, any later transition sees the
 * sign of use.
 */
export async function touchAwake(
  db: Database,
  sandboxId: string,
  useSignal: UseSignal,
  quietMs: number,
): Promise<boolean> {
  const awake = statusesThat('awake');
  const touched = await sql`
    update sandbox set last_active_at = now(), last_active_by = ${useSignal}
    where id = ${sandboxId} and status = any(${awake})
      and last_active_at < now() - ${quietMs} * interval '1 millisecond'`.execute(db);
  if (touched.numAffectedRows === 1n) return true;
  // A second statement sees the commit of a transition that the first one waited for.
  const row = await db.selectFrom('sandbox').select('status').where('id', '=', sandboxId).executeTakeFirst();
  return row !== undefined && awake.includes(row.status);
}

/** Notes the start of a process that keeps its sandbox awake, after a sign of use was recorded. */
export async function noteAwakeProcess(db: Database, sandboxId: string): Promise<void> {
  await db
    .updateTable('sandbox')
    .set({ has_awake_process: true })
    .where('id', '=', sandboxId)
    .where('has_awake_process', '=', false)
    .execute();
}

/** Unless the sandbox was used since. */
export async function forgetAwakeProcess(
  db: Database,
  { id, lastActiveAt }: Pick<SleeperRow, 'id' | 'lastActiveAt'>,
): Promise<void> {
  await sql`
    update sandbox set has_awake_process = false
    where id = ${id} and date_trunc('milliseconds', last_active_at) = ${lastActiveAt}`.execute(db);
}

/** Inputs of the idleness rule. `now` and `lastActiveAt` are by the database clock. */
export interface SleeperRow {
  id: string;
  orgId: string;
  epoch: number;
  status: SandboxStatus;
  mode: string;
  persistencePolicy: PersistencePolicy;
  idleMinutes: number | null;
  lastActiveAt: Date;
  now: Date;
  hostUrl: string;
  hasAwakeProcess: boolean;
}

/** Awake, persistent `sleep_resume` sandboxes with a host and auto-sleep enabled. */
export async function listPossibleSleepers(db: Database): Promise<SleeperRow[]> {
  const { rows } = await sql<SleeperRow>`
    select s.id, s.org_id as "orgId", s.epoch, s.status, s.mode, s.persistence_policy as "persistencePolicy",
      coalesce(s.idle_minutes, p.default_idle_minutes) as "idleMinutes",
      s.last_active_at as "lastActiveAt", now() as now, h.url as "hostUrl",
      s.has_awake_process as "hasAwakeProcess"
    from sandbox s join project p on p.id = s.project_id join host h on h.id = s.host_id
    where s.status <> 'deleted' and s.status = any(${statusesThat('awake')})
      and s.mode = 'persistent' and s.persistence_policy = 'sleep_resume'
      and coalesce(s.idle_minutes, p.default_idle_minutes) is distinct from 0`.execute(db);
  return rows;
}
