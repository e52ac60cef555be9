// Signs of use in the rows of sandboxes, and the rows that may be put to sleep for want of them.
// SQL only; what idle means is said in rules/idleness.ts.
import { statusesThat, type SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { sql } from 'kysely';
import type { Database } from '../database/schema.ts';

/**
 * Notes that an awake sandbox is used now, unless that was noted within `quietMs`; resolves with
 * whether it was awake at that moment. Waits for whoever changes the row: after `true`, a
 * transition that begins finds the sign of use.
 */
export async function touchAwake(db: Database, sandboxId: string, quietMs: number): Promise<boolean> {
  const awake = statusesThat('awake');
  const touched = await sql`
    update sandbox set last_active_at = now()
    where id = ${sandboxId} and status = any(${awake}) and last_active_at < now() - ${quietMs} * interval '1 millisecond'`.execute(
    db,
  );
  if (touched.numAffectedRows === 1n) return true;
  // A second statement, so that it sees what a transition that the first one waited for has
  // committed.
  const row = await db.selectFrom('sandbox').select('status').where('id', '=', sandboxId).executeTakeFirst();
  return row !== undefined && awake.includes(row.status);
}

/**
 * What the idleness of a sandbox depends on. `now` is the database's clock, as `lastActiveAt` is.
 */
export interface SleeperRow {
  id: string;
  orgId: string;
  epoch: number;
  status: SandboxStatus;
  mode: string;
  persistencePolicy: string;
  idleMinutes: number | null;
  lastActiveAt: Date;
  now: Date;
  hostUrl: string;
}

/**
 * Awake, persistent `sleep_resume` sandboxes with a host, of projects that have not turned sleeping
 * by itself off.
 */
export async function listPossibleSleepers(db: Database): Promise<SleeperRow[]> {
  const { rows } = await sql<SleeperRow>`
    select s.id, s.org_id as "orgId", s.epoch, s.status, s.mode, s.persistence_policy as "persistencePolicy",
      p.default_idle_minutes as "idleMinutes", s.last_active_at as "lastActiveAt", now() as now, h.url as "hostUrl"
    from sandbox s join project p on p.id = s.project_id join host h on h.id = s.host_id
    where s.status <> 'deleted' and s.status = any(${statusesThat('awake')}) and s.mode = 'persistent' and s.persistence_policy = 'sleep_resume'
      and p.default_idle_minutes is distinct from 0`.execute(db);
  return rows;
}
