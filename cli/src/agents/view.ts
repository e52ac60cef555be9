// Formats agent sessions, turns and replies.
import type { AgentSessionData, AgentTurnData } from '@berth/sdk';
import type { Field } from '../output/fields.ts';
import { EXIT } from '../output/failure.ts';
import { plainLines, plainText } from '../output/plain-text.ts';
import type { Style } from '../output/style.ts';
import { instantSince } from '../output/time.ts';

const STYLES: Readonly<Record<string, Style>> = {
  available: 'green',
  completed: 'green',
  busy: 'cyan',
  running: 'cyan',
  needs_input: 'yellow',
  waiting: 'yellow',
  starting: 'yellow',
  interrupting: 'yellow',
  failed: 'red',
  asleep: 'dim',
  stopped: 'dim',
  gone: 'dim',
  canceled: 'dim',
};

/** Style of a state of a session or turn; none for states of later versions. */
export function stateStyle(state: string | null): Style | undefined {
  return state === null ? undefined : STYLES[state];
}

export function turnText({ state, reason }: Pick<AgentTurnData, 'state' | 'reason'>): string {
  return reason === null ? state : `${state} (${reason})`;
}

/** Fields by importance. */
export function sessionFields(session: AgentSessionData): Field[] {
  const { communication, bridgeState, bridgeReason, turnState, turnReason, pendingInput } = session;
  return [
    ['id', session.id],
    ['agent', session.agentLabel],
    ['surface', session.surface],
    ['status', communication.status, stateStyle(communication.status)],
    ['available', communication.capabilities.join(', ')],
    ['bridge', bridgeReason === null ? bridgeState : `${bridgeState} (${bridgeReason})`],
    ['turn', session.turnId],
    ['turn state', turnState && turnText({ state: turnState, reason: turnReason }), stateStyle(turnState)],
    ['turn started', session.turnStartedAt && instantSince(session.turnStartedAt)],
    ['turn ended', session.turnEndedAt && instantSince(session.turnEndedAt)],
    ['waiting on', session.waitingOn, 'yellow'],
    ['request', pendingInput && `${JSON.stringify(pendingInput.requestId)} (${pendingInput.kind})`],
    ['title', pendingInput?.title],
    ['sandbox', `${session.sandboxId} (${session.sandboxStatus})`],
    ['end user', session.endUserId],
    ['project', session.projectId],
    ['org', session.orgId],
    ['state as of', instantSince(session.stateAt)],
    ['created', instantSince(session.createdAt)],
  ];
}

/** Lines of a reply; `indent` keeps them apart from lines of this program. */
export function replyLines({ text, truncated }: { text: string; truncated: boolean }, indent = ''): string[] {
  const lines = plainLines(text.replace(/\s+$/, ''));
  if (truncated) lines.push('[the reply was longer and is cut here]');
  return lines.map((line) => indent + line);
}

const REASONS: Readonly<Record<string, string>> = {
  agent_error: 'the agent reported an error',
  agent_ended: 'the agent ended; the turn may have had effects',
  bridge_ended: 'the bridge ended; the turn may have had effects',
  machine_lost: 'the VM was lost; the turn may have had effects',
  not_delivered: 'the message was not delivered, and never will be',
};

/** A sentence about the end of a turn; null for a completed one. */
export function endText({ turnId, state, reason }: Pick<AgentTurnData, 'turnId' | 'state' | 'reason'>): string | null {
  if (state === 'completed') return null;
  const why = reason === null ? '' : `: ${REASONS[reason] ?? reason} (${reason})`;
  return plainText(`turn ${turnId} ${state}${why}`);
}

/** An end of a later version counts as a failure. */
export function exitCodeOf({ state }: AgentTurnData): number {
  if (state === 'completed') return EXIT.ok;
  return state === 'canceled' ? EXIT.turnCanceled : EXIT.turnFailed;
}
