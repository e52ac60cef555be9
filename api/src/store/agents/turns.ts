// Rows of turns of agent sessions. SQL only.
import type { TurnReason, TurnState } from '@berth/contract/agents/state.ts';
import { sql } from 'kysely';
import type { AgentTurnRow, Database, DatabaseTransaction } from '../database/schema.ts';

export type { AgentTurnRow };

/** Caller of a message; the scope of its key. */
export interface TurnCaller {
  kind: string;
  /** The credential; of an access token, its sign-in. */
  id: string;
  userId: string;
}

interface NewTurn {
  id: string;
  sessionId: string;
  sandboxId: string;
  caller: TurnCaller;
  requestKey: string | null;
  textHmac: Buffer;
  runId: string | null;
}

/**
 * Inserts a turn in the state `sending`. Needs the session's lock, so that `created_at` grows.
 * `dispatched_at` equals it until another dispatch of the turn.
 */
export async function insertTurn(trx: DatabaseTransaction, turn: NewTurn): Promise<AgentTurnRow> {
  const now = sql<Date>`statement_timestamp()`;
  return await trx
    .insertInto('agent_turn')
    .values({
      id: turn.id,
      session_id: turn.sessionId,
      sandbox_id: turn.sandboxId,
      caller_kind: turn.caller.kind,
      caller_id: turn.caller.id,
      caller_user_id: turn.caller.userId,
      request_key: turn.requestKey,
      text_hmac: turn.textHmac,
      state: 'sending',
      run_id: turn.runId,
      created_at: now,
      dispatched_at: now,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Caller of a turn that a person began in the agent's terminal. */
export const PERSON = 'terminal';

/** Ids of these turns that have rows, of whichever session. */
export async function findTurnIds(db: Database, ids: readonly string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set();
  const found = await db.selectFrom('agent_turn').select('id').where('id', 'in', ids).execute();
  return new Set(found.map(({ id }) => id));
}

/** Inserts the turn of a person, as one whose state is not recorded. Needs the session's lock. */
export async function insertPersonsTurn(
  trx: DatabaseTransaction,
  turn: Pick<NewTurn, 'id' | 'sessionId' | 'sandboxId' | 'runId'>,
): Promise<void> {
  const caller = { kind: PERSON, id: '', userId: '' };
  await insertTurn(trx, { ...turn, caller, requestKey: null, textHmac: Buffer.alloc(0) });
}

/** The turn that was stored last, as a position among the turns of its session. */
export interface NewestTurn {
  /** Text: a `Date` has no microseconds. */
  createdAt: string;
  isActive: boolean;
}

export async function findNewestTurn(db: Database, sessionId: string): Promise<NewestTurn | undefined> {
  return await db
    .selectFrom('agent_turn')
    .select([
      sql<string>`created_at::text`.as('createdAt'),
      sql<boolean>`ended_at is null and dispatched_at is not null`.as('isActive'),
    ])
    .where('session_id', '=', sessionId)
    .orderBy('created_at', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/**
 * Reports whether a turn is active, or a caller's was stored after the newest one and may have run.
 */
export async function isOccupiedSince(
  trx: DatabaseTransaction,
  sessionId: string,
  newest: NewestTurn | undefined,
): Promise<boolean> {
  const since = newest?.createdAt ?? '-infinity';
  const found = await trx
    .selectFrom('agent_turn')
    .select('id')
    .where('session_id', '=', sessionId)
    .where(
      sql<boolean>`dispatched_at is not null and
        (ended_at is null or (created_at > ${since}::timestamptz and reason is distinct from 'not_delivered'
          and caller_kind <> ${PERSON}))`,
    )
    .limit(1)
    .executeTakeFirst();
  return found !== undefined;
}

export async function findTurnByKey(
  db: Database,
  sessionId: string,
  caller: TurnCaller,
  requestKey: string,
): Promise<AgentTurnRow | undefined> {
  return await db
    .selectFrom('agent_turn')
    .selectAll()
    .where('session_id', '=', sessionId)
    .where('caller_kind', '=', caller.kind)
    .where('caller_id', '=', caller.id)
    .where('request_key', '=', requestKey)
    .executeTakeFirst();
}

export async function lockTurn(trx: DatabaseTransaction, turnId: string): Promise<AgentTurnRow | undefined> {
  return await trx.selectFrom('agent_turn').selectAll().where('id', '=', turnId).forUpdate().executeTakeFirst();
}

/** Turns without an end that were dispatched, oldest first, with the age of their dispatch. */
export async function listActiveTurns(
  db: Database,
  sessionId: string,
): Promise<(AgentTurnRow & { dispatched_ms_ago: number })[]> {
  return await db
    .selectFrom('agent_turn')
    .selectAll()
    .select(sql<number>`(extract(epoch from now() - dispatched_at) * 1000)::float8`.as('dispatched_ms_ago'))
    .where('session_id', '=', sessionId)
    .where('ended_at', 'is', null)
    .where('dispatched_at', 'is not', null)
    .orderBy('created_at')
    .execute();
}

/** The last turns of a session that were taken or may have been, newest first. */
export async function listRecentTurns(db: Database, sessionId: string, limit: number): Promise<AgentTurnRow[]> {
  return await db
    .selectFrom('agent_turn')
    .selectAll()
    .where('session_id', '=', sessionId)
    .where((where) => where.or([where('dispatched_at', 'is not', null), where('ended_at', 'is not', null)]))
    .orderBy('created_at', 'desc')
    .limit(limit)
    .execute();
}

/** Opens a turn for another dispatch to the same run. Returns false if it is gone or has ended. */
export async function redispatchTurn(db: Database, turnId: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('agent_turn')
    .set({ dispatched_at: sql<Date>`clock_timestamp()` })
    .where('id', '=', turnId)
    .where('ended_at', 'is', null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Deletes a turn whose only dispatch was refused. Returns false if there may be another one. */
export async function deleteUndelivered(db: Database, turnId: string): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('agent_turn')
    .where('id', '=', turnId)
    .where('state', '=', 'sending')
    .whereRef('dispatched_at', '=', 'created_at')
    .executeTakeFirst();
  return numDeletedRows > 0n;
}

/**
 * Frees the key of a turn that the guest has declared undelivered. Deletes the turn; if another
 * call has reported its end already, keeps it without the key.
 */
export async function releaseVoidTurn(db: Database, turnId: string): Promise<void> {
  await db.deleteFrom('agent_turn').where('id', '=', turnId).where('state', '=', 'sending').execute();
  await db
    .updateTable('agent_turn')
    .set({ request_key: null })
    .where('id', '=', turnId)
    .where('reason', '=', 'not_delivered')
    .execute();
}

/** Writes the state of a turn. Needs its session's row lock. */
export async function writeTurn(
  trx: DatabaseTransaction,
  turnId: string,
  { state, reason, ended }: { state: TurnState; reason: TurnReason | null; ended: boolean },
): Promise<AgentTurnRow> {
  return await trx
    .updateTable('agent_turn')
    .set({
      state,
      reason,
      started_at: sql<Date>`coalesce(started_at, now())`,
      ...(ended ? { ended_at: sql<Date>`now()` } : {}),
    })
    .where('id', '=', turnId)
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Active turns of a sandbox; locks them. */
export async function lockActiveTurnsOf(trx: DatabaseTransaction, sandboxId: string): Promise<AgentTurnRow[]> {
  return await trx
    .selectFrom('agent_turn')
    .selectAll()
    .where('sandbox_id', '=', sandboxId)
    .where('ended_at', 'is', null)
    .where('dispatched_at', 'is not', null)
    .orderBy('id')
    .forUpdate()
    .execute();
}

/** Deletes the oldest turns of a session that are over, beyond those kept. */
export async function deleteSurplusTurns(db: Database, sessionId: string, kept: number): Promise<void> {
  await sql`
    delete from agent_turn where (ended_at is not null or dispatched_at is null) and id in (
      select id from agent_turn where session_id = ${sessionId} order by created_at desc offset ${kept})`.execute(db);
}

/**
 * Deletes at most `limit` turns that ended, or were withdrawn, the days ago. A session keeps its
 * last turn. Returns the number deleted.
 */
export async function deleteOldTurns(db: Database, days: number, limit: number): Promise<number> {
  const result = await sql`
    delete from agent_turn where id in (
      select t.id from agent_turn t join agent_session s on s.id = t.session_id
      where coalesce(t.ended_at, case when t.dispatched_at is null then t.created_at end)
        < now() - ${days} * interval '1 day' and s.turn_id is distinct from t.id
      limit ${limit})`.execute(db);
  return Number(result.numAffectedRows ?? 0);
}
