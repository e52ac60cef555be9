// Gives messages to agents. The turn and its id are stored before the dispatch, and the guest takes
// each id once: a resend dispatches the same turn, so no message runs twice. Nothing but a call of
// its sender dispatches a turn.
//
//   store `sending` ──dispatch──> taken: `running`, 202
//                       ├── surely not delivered: deleted with its key, 409 or 503
//                       └── unknown: stays `sending`, 503 message_delivery_uncertain
//
// Messages are never queued: one is stored only if no turn was active, and none has begun, since it
// arrived.
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { SentTurn } from '@berth/contract/agents/conversation.ts';
import { TURN_STATES } from '@berth/contract/agents/state.ts';
import { AGENT_TURNS_KEPT } from '@berth/contract/route/limits.ts';
import { BRIDGE_FEATURES } from '@berth/protocol/agent-errors.ts';
import { getAgent, sendAgentMessage as dispatch, voidAgentTurn } from '@berth/protocol/calls/agents.ts';
import { HostError, type HostFailureCode } from '../../hosts/error.ts';
import type { Actor } from '../../rules/access/access.ts';
import { requireOperation } from '../../rules/agents/operation.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { lockAgentSession, type AgentSessionRow } from '../../store/agents/sessions.ts';
import * as store from '../../store/agents/turns.ts';
import type { AgentTurnRow, NewestTurn, TurnCaller } from '../../store/agents/turns.ts';
import { newId } from '../../store/database/ids.ts';
import type { Database } from '../../store/database/schema.ts';
import type { LocatedSandboxRow } from '../../store/sandboxes/sandboxes.ts';
import type { ServiceContext } from '../context/context.ts';
import type { SandboxInUse } from '../sandboxes/use.ts';
import { explainAgentFailure, isAgentRefusal, refusalOf } from './failure.ts';
import { awakeForAgent } from './sessions.ts';
import { settleUncertain } from './settle.ts';
import { recordTurn, recordView } from './records/views.ts';

interface Message {
  text: string;
  requestKey?: string | undefined;
}

/** Failures of the host after which the message surely did not reach the guest. */
const NOT_SENT: ReadonlySet<HostFailureCode> = new Set<HostFailureCode>([
  'vm_not_found',
  'vm_not_running',
  'stale_epoch',
  'superseded',
  'unauthorized',
]);

export async function sendAgentMessage(
  context: ServiceContext,
  actor: Actor,
  { sandbox, session }: { sandbox: LocatedSandboxRow; session: AgentSessionRow },
  message: Message,
  signal: AbortSignal,
): Promise<SentTurn> {
  requireOperation(session, 'messages', 'send a message');
  const caller = callerOf(actor);
  const arrivedMs = performance.now();
  const newest = await store.findNewestTurn(context.db, session.id);
  const earlier = await findEarlier(context, context.db, { sessionId: session.id, caller, message });
  if (earlier !== undefined && earlier.state !== 'sending') return replay(earlier);

  const inUse = await awakeForAgent(context, actor, sandbox, signal);
  requireKeySupport(session, message);
  const { runId, isBusy } = await checkGuest(context, inUse, session, { newest, arrivedMs });
  const stored = await storeTurn(context, { session, caller, message, runId, newest, isBusy });
  const { turn, isReplay } = stored;
  if (turn.state !== 'sending') return replay(turn);
  if (isReplay && turn.run_id !== runId) return await loseTurn(context, session, turn, 'machine_lost');
  // The message of a call that ran beside this one was surely not delivered.
  if (isReplay && !(await store.redispatchTurn(context.db, turn.id)))
    return await sendAgentMessage(context, actor, { sandbox, session }, message, signal);

  return await send(context, actor, { sandbox: inUse, session, ...stored, text: message.text });
}

interface Dispatch {
  sandbox: SandboxInUse;
  session: AgentSessionRow;
  turn: AgentTurnRow;
  text: string;
  isReplay: boolean;
}

async function send(context: ServiceContext, actor: Actor, sent: Dispatch): Promise<SentTurn> {
  const { sandbox, session, turn, text, isReplay } = sent;
  const body = {
    turnId: turn.id,
    runId: turn.run_id ?? '',
    text,
    keyed: turn.request_key !== null,
    author: JSON.stringify({ kind: actor.kind, userId: actor.userId }),
  };
  let taken;
  try {
    // Without the caller's signal: a caller that leaves must not make the delivery uncertain.
    const request = { vmId: sandbox.id, params: { sessionId: session.id }, body };
    taken = await context.hosts.at(sandbox.host_url).call(dispatch, request);
  } catch (error) {
    // Declared undelivered while this call ran.
    if (isAgentRefusal(error) && error.code === 'agent_turn_void')
      return await loseTurn(context, session, turn, 'not_delivered');
    throw await explainDelivery(context, sent, error);
  }
  await recordView(context.db, session.id, {
    epoch: sandbox.epoch,
    view: taken.session,
    turns: new Map([[turn.id, taken.turn]]),
    sender: { turnId: turn.id, actor },
  });
  const state = taken.turn.state === 'void' ? 'failed' : taken.turn.state;
  return { turnId: turn.id, state, ...(isReplay ? { replayed: true as const } : {}) };
}

/** The error of a failed dispatch. Leaves nothing of a message that was surely not delivered. */
async function explainDelivery(context: ServiceContext, sent: Dispatch, error: unknown): Promise<unknown> {
  const { session, turn } = sent;
  if (!(error instanceof HostError)) return error;
  if (isAgentRefusal(error) && (await withdraw(context, sent))) return refusalOf(error.code, session, 'send a message');
  if (NOT_SENT.has(error.code) && (await store.deleteUndelivered(context.db, turn.id)))
    return await explainAgentFailure(context, session, error, '; the message was not delivered');

  return new CodedError(
    'message_delivery_uncertain',
    `the message may or may not have been delivered as turn ${turn.id}; ` +
      (turn.request_key === null
        ? 'inspect the session before sending it again'
        : 'send it again with the same requestKey, or inspect the session'),
    { turnId: turn.id, cause: error },
  );
}

/**
 * Deletes the turn of a refused message, or frees its key. If another call has dispatched it too,
 * the guest first declares it undelivered. Returns false if it may run.
 */
async function withdraw(
  context: ServiceContext,
  { sandbox, session, turn }: Pick<Dispatch, 'sandbox' | 'session' | 'turn'>,
): Promise<boolean> {
  if (await store.deleteUndelivered(context.db, turn.id)) return true;
  try {
    const request = { vmId: sandbox.id, params: { sessionId: session.id, turnId: turn.id } };
    const settled = await context.hosts.at(sandbox.host_url).call(voidAgentTurn, request);
    if (settled.turn.state !== 'void') return false;
  } catch (error) {
    if (error instanceof HostError) return false;
    throw error;
  }
  await store.releaseVoidTurn(context.db, turn.id);
  return true;
}

interface KeyedBy {
  sessionId: string;
  caller: TurnCaller;
  message: Message;
}

/** The turn of an earlier message with this key. Throws `request_key_conflict`. */
async function findEarlier(
  context: ServiceContext,
  db: Database,
  { sessionId, caller, message: { text, requestKey } }: KeyedBy,
): Promise<AgentTurnRow | undefined> {
  if (requestKey === undefined) return undefined;
  const earlier = await store.findTurnByKey(db, sessionId, caller, requestKey);
  if (earlier === undefined) return undefined;
  const isSame = hmacsOf(context, sessionId, text).some((hmac) => timingSafeEqual(hmac, earlier.text_hmac));
  if (isSame) return earlier;
  throw new CodedError(
    'request_key_conflict',
    `the requestKey was used with a different text, for turn ${earlier.id}; use another key for another message`,
  );
}

interface Storing {
  session: AgentSessionRow;
  caller: TurnCaller;
  message: Message;
  runId: string;
  newest: NewestTurn | undefined;
  isBusy: boolean;
}

/**
 * Stores the turn before its dispatch, or finds that of a concurrent message with the same key.
 * Throws `agent_turn_active`.
 */
async function storeTurn(
  context: ServiceContext,
  { session, caller, message, runId, newest, isBusy }: Storing,
): Promise<{ turn: AgentTurnRow; isReplay: boolean }> {
  const [textHmac] = hmacsOf(context, session.id, message.text);
  return await context.db.transaction().execute(async (trx) => {
    await lockAgentSession(trx, session.id);
    const earlier = await findEarlier(context, trx, { sessionId: session.id, caller, message });
    if (earlier !== undefined) return { turn: earlier, isReplay: true };
    if (isBusy || (await store.isOccupiedSince(trx, session.id, newest))) throw refusalOf('agent_turn_active', session);

    const turn = await store.insertTurn(trx, {
      id: newId('agentTurn'),
      sessionId: session.id,
      sandboxId: session.sandbox_id,
      caller,
      requestKey: message.requestKey ?? null,
      textHmac: textHmac as Buffer,
      runId,
    });
    await store.deleteSurplusTurns(trx, session.id, AGENT_TURNS_KEPT.perSession);
    return { turn, isReplay: false };
  });
}

/**
 * The run of the guest, after turns of unknown delivery are settled. `isBusy`: a turn is active, or
 * one that the rows had as active has ended in the guest since the message arrived.
 */
async function checkGuest(
  context: ServiceContext,
  sandbox: SandboxInUse,
  session: AgentSessionRow,
  { newest, arrivedMs }: { newest: NewestTurn | undefined; arrivedMs: number },
): Promise<{ runId: string; isBusy: boolean }> {
  const at = { sandbox, session, hostUrl: sandbox.host_url };
  try {
    const request = { vmId: sandbox.id, params: { sessionId: session.id }, query: {} };
    const found = await context.hosts.at(sandbox.host_url).call(getAgent, request);
    const { session: view, recentTurns, nowUnixMs } = found;
    const active = await store.listActiveTurns(context.db, session.id);
    const turns = active.length === 0 ? undefined : await settleUncertain(context, at, view.runId);
    const received = { epoch: sandbox.epoch, view, recentTurns, ...(turns === undefined ? {} : { turns }) };
    await recordView(context.db, session.id, received);
    const endedUnixMs = view.turn?.endedUnixMs ?? null;
    const endedSince =
      newest?.isActive === true &&
      nowUnixMs !== undefined &&
      endedUnixMs !== null &&
      nowUnixMs - endedUnixMs < performance.now() - arrivedMs;
    return { runId: view.runId, isBusy: (view.turn !== null && endedUnixMs === null) || endedSince };
  } catch (error) {
    throw await explainAgentFailure(context, session, error, '; the message was not sent');
  }
}

async function loseTurn(
  context: ServiceContext,
  session: AgentSessionRow,
  turn: AgentTurnRow,
  reason: 'machine_lost' | 'not_delivered',
): Promise<SentTurn> {
  await endTurn(context, session, turn, reason);
  return { turnId: turn.id, state: 'failed', replayed: true };
}

async function endTurn(
  context: ServiceContext,
  session: AgentSessionRow,
  { id }: AgentTurnRow,
  reason: 'machine_lost' | 'not_delivered',
): Promise<void> {
  await context.db.transaction().execute(async (trx) => {
    const turn = await store.lockTurn(trx, id);
    if (turn !== undefined && TURN_STATES[turn.state].active)
      await recordTurn(trx, session, turn, { state: 'failed', reason });
  });
}

function replay({ id, state }: AgentTurnRow): SentTurn {
  return { turnId: id, state, replayed: true };
}

function requireKeySupport({ bridge_version: version, ...session }: AgentSessionRow, { requestKey }: Message): void {
  if (requestKey !== undefined && version !== null && version < BRIDGE_FEATURES.keyedMessages)
    throw refusalOf('agent_bridge_too_old', session);
}

/** An access token changes every hour; its sign-in is the credential. */
function callerOf(actor: Actor): TurnCaller {
  return { kind: actor.kind, id: actor.kind === 'session' ? actor.loginId : actor.id, userId: actor.userId };
}

/** Hashes of the text, keyed by the current key and the former ones: short texts are guessable. */
function hmacsOf({ secretKey }: ServiceContext, sessionId: string, text: string): Buffer[] {
  return secretKey
    .keysFor('agent-messages')
    .map(({ key }) => createHmac('sha256', key).update(sessionId).update('\0').update(text).digest());
}
