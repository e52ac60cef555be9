// Rows of agent sessions. SQL only.
import type { Agent } from '@berth/contract/sandboxes/fields.ts';
import { statusesThat, type SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { sql, type Insertable, type UpdateObject } from 'kysely';
import type { PageRequest, Slice } from '../../rules/page.ts';
import { newId } from '../database/ids.ts';
import { selectSlice } from '../database/pages.ts';
import type {
  AgentSessionRow,
  AgentTurnRow,
  Database,
  DatabaseTransaction,
  SandboxRow,
  Tables,
} from '../database/schema.ts';

export type { AgentSessionRow };

/** A session as shown: with its last turn, and the state of its sandbox. */
export type ShownSessionRow = AgentSessionRow & {
  turn_state: AgentTurnRow['state'] | null;
  turn_reason: AgentTurnRow['reason'];
  turn_started_at: Date | null;
  turn_ended_at: Date | null;
  sandbox_status: SandboxStatus;
  sandbox_epoch: number;
};

export interface SessionCreator {
  kind: string;
  id: string;
  userId: string;
}

/** Columns of a session that has not started. */
export function newAgentSession(
  sandbox: SandboxRow,
  creator: SessionCreator,
  surface: AgentSessionRow['surface'],
): Insertable<Tables['agent_session']> {
  return {
    id: newId('agentSession'),
    org_id: sandbox.org_id,
    project_id: sandbox.project_id,
    sandbox_id: sandbox.id,
    end_user_id: sandbox.end_user_id,
    agent: sandbox.agent,
    surface,
    bridge_state: 'starting',
    created_by: creator.userId,
    creator_kind: creator.kind,
    creator_id: creator.id,
  };
}

/** Inserts a managed session. */
export async function insertAgentSession(
  db: Database,
  sandbox: SandboxRow,
  creator: SessionCreator,
): Promise<AgentSessionRow> {
  return await db
    .insertInto('agent_session')
    .values(newAgentSession(sandbox, creator, 'managed'))
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Locks the row until the transaction ends. */
export async function lockAgentSession(
  trx: DatabaseTransaction,
  sessionId: string,
): Promise<AgentSessionRow | undefined> {
  return await trx.selectFrom('agent_session').selectAll().where('id', '=', sessionId).forUpdate().executeTakeFirst();
}

/** Writes columns under the next revision. Needs the row lock. */
export async function writeAgentSession(
  trx: DatabaseTransaction,
  sessionId: string,
  columns: UpdateObject<Tables, 'agent_session'>,
): Promise<void> {
  await trx
    .updateTable('agent_session')
    .set({ ...columns, revision: sql<number>`revision + 1`, updated_at: sql<Date>`now()` })
    .where('id', '=', sessionId)
    .execute();
}

/** Writes columns of a guest's view. Needs the row lock. */
export async function writeSessionView(
  trx: DatabaseTransaction,
  sessionId: string,
  columns: UpdateObject<Tables, 'agent_session'>,
): Promise<void> {
  await writeAgentSession(trx, sessionId, { ...columns, state_at: sql<Date>`now()` });
}

/** Writes what bounds the session's entries in the feed; no response has it. */
export async function writeEntryTimes(
  db: Database,
  sessionId: string,
  columns: Partial<Pick<AgentSessionRow, 'prompt_noted_at' | 'prompts_unnoted' | 'stop_noted_at'>>,
): Promise<void> {
  await db.updateTable('agent_session').set(columns).where('id', '=', sessionId).execute();
}

/** Records that the guest was asked, and its signs of life. */
export async function touchAgentSession(trx: DatabaseTransaction, sessionId: string, signs: number): Promise<void> {
  await trx
    .updateTable('agent_session')
    .set({ state_at: sql<Date>`now()`, signs })
    .where('id', '=', sessionId)
    .execute();
}

/**
 * Stops sessions whose start was lost: one, or those unchanged for the seconds. A session that the
 * guest has reported since keeps its state.
 */
export async function stopLostStarts(db: Database, lost: { sessionId: string } | { seconds: number }): Promise<void> {
  const starting = db
    .updateTable('agent_session')
    .set({
      bridge_state: 'stopped',
      bridge_reason: 'not_ready',
      revision: sql<number>`revision + 1`,
      updated_at: sql<Date>`now()`,
    })
    .where('bridge_state', '=', 'starting');
  const those =
    'sessionId' in lost
      ? starting.where('id', '=', lost.sessionId)
      : starting.where('updated_at', '<', sql<Date>`now() - ${lost.seconds} * interval '1 second'`);
  await those.execute();
}

/** Longer than a start takes, whose recover still has the session as stopped. */
const MODELS_AFTER_STOP_SECONDS = 120;

/** An expression: sandboxes whose agent may use models, by a session that did not stop long ago. */
export const SANDBOXES_USING_MODELS = sql<string>`(
  select sandbox_id from agent_session where gone_at is null and (bridge_state <> 'stopped'
    or updated_at > now() - ${MODELS_AFTER_STOP_SECONDS}::int * interval '1 second'))`;

export async function mayUseModels(db: Database, sandboxId: string): Promise<boolean> {
  const found = db.selectFrom('sandbox').select('id').where('id', '=', sandboxId);
  return (await found.where('id', 'in', SANDBOXES_USING_MODELS).executeTakeFirst()) !== undefined;
}

/** Counts a recover that begins as a change, so that the session may use models. */
export async function noteRecover(db: Database, sessionId: string): Promise<void> {
  await db
    .updateTable('agent_session')
    .set({ updated_at: sql<Date>`now()` })
    .where('id', '=', sessionId)
    .execute();
}

/** Deletes a session that was never started. */
export async function deleteAgentSession(db: Database, sessionId: string): Promise<void> {
  await db.deleteFrom('agent_session').where('id', '=', sessionId).execute();
}

export async function findShownSession(db: Database, sessionId: string): Promise<ShownSessionRow | undefined> {
  return await shown(db).where('agent_session.id', '=', sessionId).executeTakeFirst();
}

export interface SessionFilter {
  /** Orgs to list; sessions of others are not. */
  orgIds: readonly string[];
  projectId?: string | undefined;
  sandboxId?: string | undefined;
  needsYou?: boolean | undefined;
}

/** Newest first. */
export async function listShownSessions(
  db: Database,
  filter: SessionFilter,
  page: PageRequest,
): Promise<Slice<ShownSessionRow>> {
  let query = shown(db).where('agent_session.org_id', 'in', filter.orgIds.length === 0 ? [''] : filter.orgIds);
  if (filter.projectId !== undefined) query = query.where('agent_session.project_id', '=', filter.projectId);
  if (filter.sandboxId !== undefined) query = query.where('agent_session.sandbox_id', '=', filter.sandboxId);
  if (filter.needsYou !== undefined)
    query = query.where('agent_session.prompt_id', filter.needsYou ? 'is not' : 'is', null);
  const order = { at: 'agent_session.created_at', tie: 'agent_session.id', direction: 'desc' } as const;
  return await selectSlice(query, order, page);
}

function shown(db: Database) {
  return db
    .selectFrom('agent_session')
    .innerJoin('sandbox', 'sandbox.id', 'agent_session.sandbox_id')
    .leftJoin('agent_turn', 'agent_turn.id', 'agent_session.turn_id')
    .selectAll('agent_session')
    .select([
      'agent_turn.state as turn_state',
      'agent_turn.reason as turn_reason',
      'agent_turn.started_at as turn_started_at',
      'agent_turn.ended_at as turn_ended_at',
      'sandbox.status as sandbox_status',
      'sandbox.epoch as sandbox_epoch',
    ]);
}

/** Sessions of a sandbox that are not gone. */
export async function listLiveSessions(db: Database, sandboxId: string): Promise<AgentSessionRow[]> {
  return await db
    .selectFrom('agent_session')
    .selectAll()
    .where('sandbox_id', '=', sandboxId)
    .where('gone_at', 'is', null)
    .execute();
}

/** Awake sandboxes of the project whose agent may use models. */
export async function listAwakeUsingModels(
  db: Database,
  projectId: string,
  agent: Agent,
): Promise<{ id: string; epoch: number; host_url: string }[]> {
  return await db
    .selectFrom('sandbox')
    .innerJoin('host', 'host.id', 'sandbox.host_id')
    .select(['sandbox.id', 'sandbox.epoch', 'host.url as host_url'])
    .where('sandbox.agent', '=', agent)
    .where('sandbox.status', 'in', statusesThat('awake'))
    .where('sandbox.project_id', '=', projectId)
    .where('sandbox.id', 'in', SANDBOXES_USING_MODELS)
    .execute();
}

/** Stops the bridges of a sandbox that booted its disk in the epoch. */
export async function stopBridges(trx: DatabaseTransaction, sandboxId: string, epoch: number): Promise<void> {
  await trx
    .updateTable('agent_session')
    .set({
      bridge_state: 'stopped',
      bridge_reason: 'machine_lost',
      prompt_id: null,
      prompt_kind: null,
      prompt_turn_id: null,
      prompt_asked_at: null,
      view_epoch: epoch,
      view_run_id: null,
      revision: sql<number>`revision + 1`,
      updated_at: sql<Date>`now()`,
    })
    .where('sandbox_id', '=', sandboxId)
    .where('gone_at', 'is', null)
    .execute();
}

/** Marks the sessions of a deleted sandbox. */
export async function endSessions(trx: DatabaseTransaction, sandboxId: string): Promise<void> {
  await trx
    .updateTable('agent_session')
    .set({
      bridge_state: 'gone',
      bridge_reason: null,
      prompt_id: null,
      prompt_kind: null,
      prompt_turn_id: null,
      prompt_asked_at: null,
      gone_at: sql<Date>`now()`,
      revision: sql<number>`revision + 1`,
      updated_at: sql<Date>`now()`,
    })
    .where('sandbox_id', '=', sandboxId)
    .where('gone_at', 'is', null)
    .execute();
}

/** Deletes at most `limit` sessions that are gone for the days. Returns the number deleted. */
export async function deleteGoneSessions(db: Database, days: number, limit: number): Promise<number> {
  const result = await sql`
    delete from agent_session where id in (
      select id from agent_session where gone_at < now() - ${days} * interval '1 day' limit ${limit})`.execute(db);
  return Number(result.numAffectedRows ?? 0);
}
