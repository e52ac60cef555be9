// Shows a pending approval, asks for the decision and sends it.
import { setTimeout as delay } from 'node:timers/promises';
import { BerthError, type AgentDecision, type AgentPendingInput, type AgentSession } from '@berth/sdk';
import { HOLD_SECONDS } from '@berth/sdk/limits';
import type { CliContext } from '../program/context.ts';
import { prompt } from '../interaction/prompt.ts';
import { discardTyped } from '../interaction/typed-ahead.ts';
import { plainText } from '../output/plain-text.ts';
import { approvalLines } from './approval-text.ts';
import { unavailable } from './session.ts';

type Streams = Pick<CliContext, 'out' | 'stdin' | 'stderr' | 'signal'>;

const DECISIONS = ['accept', 'decline', 'cancel'] as const satisfies readonly AgentDecision[];
/** Between two reads, which are held only while the sandbox is awake. */
const WATCH_PAUSE_MS = 2_000;

/**
 * Asks until a decision was taken, here or elsewhere. Resolves with the one taken here; null if the
 * approval was answered or withdrawn elsewhere. Requires a terminal.
 */
export async function askForDecision(
  { out, stdin, stderr, signal }: Streams,
  session: AgentSession,
  { requestId }: Pick<AgentPendingInput, 'requestId'>,
): Promise<AgentDecision | null> {
  const isPending = (): boolean => session.data.pendingInput?.requestId === requestId;
  await session.refresh({ detail: 'full', signal });
  const { pendingInput: approval } = session.data;
  if (approval === null || !isPending()) return withdrawn(out);
  approvalLines(approval, stderr.isTTY ? stderr.columns || undefined : undefined).forEach((line) => out.note(line));
  discardTyped(stdin);

  const offered = DECISIONS.filter((decision) => approval.decisions.includes(decision));
  const stop = new AbortController();
  const asking = { stdin, stderr, signal: AbortSignal.any([signal, stop.signal]) };
  const watching = untilWithdrawn(session, isPending, asking.signal).then(
    () => stop.abort(new Withdrawn()),
    () => undefined,
  );
  try {
    for (;;) {
      const decision = await readDecision(asking, offered);
      const answered = await sendDecision({ out, signal }, session, requestId, decision);
      if (answered === 'taken') return decision;
      if (answered === 'withdrawn') return withdrawn(out);
    }
  } catch (error) {
    if (!(error instanceof Withdrawn)) throw error;
    out.note('');
    return withdrawn(out);
  } finally {
    stop.abort();
    await watching;
  }
}

class Withdrawn extends Error {}

function withdrawn(out: Streams['out']): null {
  out.note('the approval was answered or withdrawn elsewhere');
  return null;
}

/** Repeats the question; nothing is chosen by an empty answer. */
async function readDecision(
  streams: Pick<Streams, 'stdin' | 'stderr' | 'signal'>,
  decisions: readonly AgentDecision[],
): Promise<AgentDecision> {
  const hint = decisions.map((word) => `[${word.slice(0, 1)}]${word.slice(1)}`).join(', ');
  for (;;) {
    const typed = (await prompt(streams, `${hint}? `)).toLowerCase();
    const chosen = decisions.find((word) => typed !== '' && (typed === word || typed === word.slice(0, 1)));
    if (chosen !== undefined) return chosen;
  }
}

async function sendDecision(
  { out, signal }: Pick<Streams, 'out' | 'signal'>,
  session: AgentSession,
  requestId: number | string,
  decision: AgentDecision,
): Promise<'taken' | 'withdrawn' | 'failed'> {
  try {
    await session.answer(requestId, decision, { signal });
    return 'taken';
  } catch (error) {
    if (!(error instanceof BerthError)) throw error;
    if (error.code === 'agent_prompt_not_pending' || error.code === 'agent_bridge_stopped') return 'withdrawn';
    if (error.code === 'sandbox_state_conflict') {
      await session.refresh({ signal });
      const { reason, remedy } = unavailable(session.data);
      out.hint(`cannot answer: ${reason}; ${remedy}, then answer again`);
      return 'failed';
    }
    if (!error.retryable) throw error;
    out.note(`cannot answer: ${plainText(error.message)}; answer again`);
    return 'failed';
  }
}

/** Resolves once the approval is no longer pending. Survives failed reads. */
async function untilWithdrawn(session: AgentSession, isPending: () => boolean, signal: AbortSignal): Promise<void> {
  while (isPending()) {
    await session.refresh({ waitSeconds: HOLD_SECONDS.max, signal }).catch(() => undefined);
    if (isPending()) await delay(WATCH_PAUSE_MS, undefined, { signal });
  }
}
