// Agent sessions: create, recover, read and list. The guest owns a session; the rows hold its last
// known state.
import { TURN_STATES } from '@berth/contract/agents/state.ts';
import { AGENT_SESSIONS_PAGE, AGENT_WAKE_WAIT_MS } from '@berth/contract/route/limits.ts';
import { SANDBOX_STATES } from '@berth/contract/sandboxes/state.ts';
import { getAgent } from '@berth/protocol/calls/agents.ts';
import type { GuestPromptText } from '@berth/protocol/agents.ts';
import type { Actor } from '../../rules/access/access.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { readOnePage, type CursorPage } from '../../rules/page.ts';
import { requireLegal } from '../../rules/sandboxes/action.ts';
import * as store from '../../store/agents/sessions.ts';
import type { AgentSessionRow, ShownSessionRow } from '../../store/agents/sessions.ts';
import { requireOperation } from '../../rules/agents/operation.ts';
import { shownPrompt } from '../../rules/agents/prompt.ts';
import { listRecentTurns, type AgentTurnRow } from '../../store/agents/turns.ts';
import type { LocatedSandboxRow } from '../../store/sandboxes/sandboxes.ts';
import { readableOrgs, type NamedInQuery } from '../access/discovery.ts';
import type { ServiceContext } from '../context/context.ts';
import { ensureAwake, type SandboxInUse } from '../sandboxes/use.ts';
import { settleUncertain } from './settle.ts';
import { startSession } from './start.ts';
import { recordViewIn } from './records/views.ts';

export type { AgentSessionRow, ShownSessionRow };

const RECENT_TURNS = 10;
/** Deadline of the look into the guest for a read. */
const LOOK_MS = 5_000;

export interface SessionDetail {
  row: ShownSessionRow;
  recentTurns: AgentTurnRow[];
  /** Text of the pending approval, if the guest was asked for it. */
  prompt: GuestPromptText | null;
}

/** Starts a conversation with the agent of the sandbox. Goes on when the caller disconnects. */
export async function createAgentSession(
  context: ServiceContext,
  actor: Actor,
  sandbox: LocatedSandboxRow,
  signal: AbortSignal,
): Promise<SessionDetail> {
  const inUse = await awakeForAgent(context, actor, sandbox, signal);
  const session = await store.insertAgentSession(context.db, inUse, actor);
  await startSession(context, actor, inUse, session, 'create');
  return await detailOf(context, session.id, null);
}

/** Restarts a stopped bridge. A ready one is left alone. */
export async function recoverAgentSession(
  context: ServiceContext,
  actor: Actor,
  { sandbox, session }: { sandbox: LocatedSandboxRow; session: AgentSessionRow },
  signal: AbortSignal,
): Promise<SessionDetail> {
  requireOperation(session, 'recovery', 'recover the session');
  const inUse = await ensureAwake(context, actor, sandbox, { ...AGENT_USE, mayWake: false }, signal);
  await startSession(context, actor, inUse, session, 'recover');
  return await detailOf(context, session.id, null);
}

export const AGENT_USE = { action: 'agent_session', signalOfUse: 'agent', waitMs: AGENT_WAKE_WAIT_MS } as const;

/** Wakes the sandbox if its project and the caller's token allow it. */
export async function awakeForAgent(
  context: ServiceContext,
  actor: Actor,
  sandbox: LocatedSandboxRow,
  signal: AbortSignal,
): Promise<SandboxInUse> {
  const mayWake = actor.kind !== 'agent_token' || actor.permissions.has('sandbox.wake');
  return await ensureAwake(context, actor, sandbox, { ...AGENT_USE, mayWake }, signal);
}

interface GetOptions {
  detail: 'short' | 'full';
  /** Revision that the caller knows. */
  revision: string | undefined;
  holdMs: number;
  signal: AbortSignal;
}

/**
 * The session as the guest has it if its sandbox is awake and responds, otherwise as last known.
 * Held until its revision differs from the known one. Without one, held until the next change while
 * a turn is active and needs no person.
 */
export async function getAgentSession(
  context: ServiceContext,
  { sandbox, session }: { sandbox: LocatedSandboxRow; session: AgentSessionRow },
  { detail, revision, holdMs, signal }: GetOptions,
): Promise<SessionDetail> {
  const until = performance.now() + holdMs;
  let seen = await look(context, sandbox, session, { detail, signal });
  if (revision === undefined && !isWorking(seen.session.row)) return seen.session;
  const known = revision ?? revisionOf(seen.session.row);
  const hasEnded = (): boolean => signal.aborted || context.holds.ending.aborted;
  while (seen.guestRevision !== null && revisionOf(seen.session.row) === known && !hasEnded()) {
    const waitMs = Math.floor(until - performance.now());
    if (waitMs <= 0) break;
    seen = await look(context, sandbox, session, { detail, signal, after: seen.guestRevision, waitMs });
  }
  return seen.session;
}

function isWorking({ turn_state: turn, prompt_id: promptId }: ShownSessionRow): boolean {
  return turn !== null && TURN_STATES[turn].active && promptId === null;
}

/** Changes with everything that a caller sees of the session. */
export function revisionOf(row: ShownSessionRow): string {
  return `${row.revision}.${row.sandbox_epoch}.${row.sandbox_status}`;
}

interface Look {
  detail: 'short' | 'full';
  signal: AbortSignal;
  /** Holds the guest's response until its revision is higher. */
  after?: number;
  waitMs?: number;
}

async function look(
  context: ServiceContext,
  sandbox: LocatedSandboxRow,
  session: AgentSessionRow,
  { detail, signal, after, waitMs = 0 }: Look,
): Promise<{ session: SessionDetail; guestRevision: number | null }> {
  const { host_url: hostUrl } = sandbox;
  if (!SANDBOX_STATES[sandbox.status].awake || hostUrl === null)
    return { session: await detailOf(context, session.id, null), guestRevision: null };

  const query = { detail, ...(after === undefined ? {} : { revision: after, waitMs }) };
  try {
    const host = context.hosts.at(hostUrl);
    const request = { vmId: sandbox.id, params: { sessionId: session.id }, query };
    const ended = waitMs > 0 ? AbortSignal.any([signal, context.holds.ending]) : signal;
    const found = await host.call(getAgent, request, { signal: ended, deadlineMs: waitMs + LOOK_MS });
    const turns = await settleUncertain(context, { sandbox, session, hostUrl }, found.session.runId);
    const received = { view: found.session, recentTurns: found.recentTurns };
    await context.db
      .transaction()
      .execute((trx) => recordViewIn(trx, session.id, { ...received, epoch: sandbox.epoch, turns }));
    return {
      session: await detailOf(context, session.id, found.prompt && shownPrompt(found.prompt, detail)),
      guestRevision: found.session.revision,
    };
  } catch (error) {
    signal.throwIfAborted();
    context.log.info(
      { err: error, sandboxId: sandbox.id, sessionId: session.id },
      'could not look at an agent session',
    );
    return { session: await detailOf(context, session.id, null), guestRevision: null };
  }
}

async function detailOf(
  { db }: ServiceContext,
  sessionId: string,
  prompt: GuestPromptText | null,
): Promise<SessionDetail> {
  const row = await store.findShownSession(db, sessionId);
  if (row === undefined) throw new CodedError('agent_session_not_found', 'there is no agent session with this id');
  return { row, recentTurns: await listRecentTurns(db, sessionId, RECENT_TURNS), prompt };
}

export interface ListQuery extends NamedInQuery {
  needsYou?: 'true' | 'false' | undefined;
  after?: string | undefined;
  limit?: number | undefined;
}

/** Sessions of all orgs that the actor may read; asks no host. */
export async function listAgentSessions(
  context: ServiceContext,
  actor: Actor,
  { needsYou, after, limit = AGENT_SESSIONS_PAGE.default, ...named }: ListQuery,
): Promise<CursorPage<ShownSessionRow>> {
  const orgIds = await readableOrgs(context, actor, 'agent_session.read', named);
  const filter = {
    orgIds,
    projectId: named.projectId,
    sandboxId: named.sandboxId,
    needsYou: needsYou === undefined ? undefined : needsYou === 'true',
  };
  return await readOnePage('agentSessions', { limit, after }, (page) =>
    store.listShownSessions(context.db, filter, page),
  );
}

/** The host of an awake sandbox, for a read that wakes nothing. Throws `sandbox_state_conflict`. */
export function requireAwakeHost(sandbox: LocatedSandboxRow): string {
  requireLegal('agent_session', sandbox.status);
  if (sandbox.host_url === null) throw new Error(`sandbox ${sandbox.id} is ${sandbox.status} without a host`);
  return sandbox.host_url;
}
