// Replies, turns, approvals and interrupts of agent sessions: read from the guest, never stored.
import { AGENT_OUTPUT_PAGE } from '@berth/contract/route/limits.ts';
import type { AgentDecision } from '@berth/contract/agents/sessions.ts';
import { answerAgent, interruptAgent, readAgentOutput, readAgentTurns } from '@berth/protocol/calls/agents.ts';
import type { GuestAgentView, GuestReply, GuestTurnText } from '@berth/protocol/agents.ts';
import type { Actor } from '../../rules/access/access.ts';
import { readReplyCursor, writeReplyCursor } from '../../rules/agents/cursor.ts';
import { requireOperation } from '../../rules/agents/operation.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { writeEntryTimes, type AgentSessionRow } from '../../store/agents/sessions.ts';
import type { LocatedSandboxRow } from '../../store/sandboxes/sandboxes.ts';
import type { ServiceContext } from '../context/context.ts';
import { ensureAwake } from '../sandboxes/use.ts';
import { explainAgentFailure } from './failure.ts';
import { AGENT_USE, requireAwakeHost } from './sessions.ts';
import { note } from './records/entries.ts';
import { recordViewIn } from './records/views.ts';

export interface SessionInSandbox {
  sandbox: LocatedSandboxRow;
  session: AgentSessionRow;
}

interface Page {
  after?: string | undefined;
  limit?: number | undefined;
}

/** Completed replies behind the cursor; held until there is one. */
export async function readOutput(
  context: ServiceContext,
  { sandbox, session }: SessionInSandbox,
  page: Page,
  { holdMs, signal }: { holdMs: number; signal: AbortSignal },
): Promise<{ replies: GuestReply[]; nextCursor: string; hasMore: boolean }> {
  requireOperation(session, 'output', 'read replies');
  const host = context.hosts.at(requireAwakeHost(sandbox));
  const after = readReplyCursor('output', session.id, page.after);
  const limit = page.limit ?? AGENT_OUTPUT_PAGE.default;
  const query = { after, limit, ...(holdMs > 0 ? { waitMs: holdMs } : {}) };
  try {
    const request = { vmId: sandbox.id, params: { sessionId: session.id }, query };
    const ended = holdMs > 0 ? AbortSignal.any([signal, context.holds.ending]) : signal;
    const { replies, hasMore } = await host.call(readAgentOutput, request, { signal: ended });
    requireRising(
      after,
      replies.map(({ seq }) => seq),
    );
    return { replies, hasMore, nextCursor: writeReplyCursor('output', session.id, replies.at(-1)?.seq ?? after) };
  } catch (error) {
    signal.throwIfAborted();
    if (holdMs > 0 && context.holds.ending.aborted)
      return { replies: [], hasMore: false, nextCursor: writeReplyCursor('output', session.id, after) };

    throw await explainAgentFailure(context, session, error);
  }
}

/** Turns with their messages behind the cursor. */
export async function readTurns(
  context: ServiceContext,
  { sandbox, session }: SessionInSandbox,
  page: Page,
  signal: AbortSignal,
): Promise<{ turns: GuestTurnText[]; nextCursor: string; hasMore: boolean }> {
  requireOperation(session, 'output', 'read turns');
  const host = context.hosts.at(requireAwakeHost(sandbox));
  const after = readReplyCursor('turns', session.id, page.after);
  const query = { after, limit: page.limit ?? AGENT_OUTPUT_PAGE.default };
  try {
    const request = { vmId: sandbox.id, params: { sessionId: session.id }, query };
    const { turns, hasMore } = await host.call(readAgentTurns, request, { signal });
    requireRising(
      after,
      turns.map(({ number }) => number),
    );
    return { turns, hasMore, nextCursor: writeReplyCursor('turns', session.id, turns.at(-1)?.number ?? after) };
  } catch (error) {
    signal.throwIfAborted();
    throw await explainAgentFailure(context, session, error);
  }
}

/** A guest whose numbers do not rise lies: its page is no page. */
function requireRising(after: number, numbers: readonly number[]): void {
  let before = after;
  for (const number of numbers) {
    if (number <= before) throw new CodedError('sandbox_unreachable', 'the sandbox returned its replies out of order');
    before = number;
  }
}

export interface Answered {
  repeated: boolean;
  turn: GuestAgentView['turn'];
}

/** Answers the pending approval. A repeated answer changes nothing. */
export async function answerPrompt(
  context: ServiceContext,
  actor: Actor,
  { sandbox, session }: SessionInSandbox,
  body: { requestId: number | string; decision: AgentDecision },
  signal: AbortSignal,
): Promise<Answered> {
  requireOperation(session, 'approvals', 'answer an approval');
  const inUse = await ensureAwake(context, actor, sandbox, { ...AGENT_USE, mayWake: false }, signal);
  const request = { vmId: inUse.id, params: { sessionId: session.id }, body };
  let answered;
  try {
    answered = await context.hosts.at(inUse.host_url).call(answerAgent, request);
  } catch (error) {
    throw await explainAgentFailure(
      context,
      session,
      error,
      '; the answer may or may not have been taken',
      'answer an approval',
    );
  }
  const { repeated, session: view } = answered;
  await context.db.transaction().execute(async (trx) => {
    if (!repeated) await writeEntryTimes(trx, session.id, { prompt_noted_at: null, prompts_unnoted: 0 });
    await recordViewIn(trx, session.id, { epoch: inUse.epoch, view });
    await note(trx, session, actor, 'agent_prompt_answered', { ...body, repeated });
  });
  return { repeated, turn: view.turn };
}

/** Requests the end of the active turn. */
export async function interruptTurn(
  context: ServiceContext,
  actor: Actor,
  { sandbox, session }: SessionInSandbox,
  signal: AbortSignal,
): Promise<NonNullable<GuestAgentView['turn']>> {
  requireOperation(session, 'interruption', 'interrupt a turn');
  const inUse = await ensureAwake(context, actor, sandbox, { ...AGENT_USE, mayWake: false }, signal);
  const request = { vmId: inUse.id, params: { sessionId: session.id } };
  let view: GuestAgentView;
  try {
    view = (await context.hosts.at(inUse.host_url).call(interruptAgent, request)).session;
  } catch (error) {
    throw await explainAgentFailure(
      context,
      session,
      error,
      '; the interrupt may or may not have been requested',
      'interrupt a turn',
    );
  }
  const { turn } = view;
  if (turn === null) throw new CodedError('agent_turn_not_active', 'no turn is active');
  await context.db.transaction().execute(async (trx) => {
    await recordViewIn(trx, session.id, { epoch: inUse.epoch, view });
    await note(trx, session, actor, 'agent_turn_interrupted', { turnId: turn.turnId });
  });
  return turn;
}
