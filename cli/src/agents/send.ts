// `berth agent send`: sends a message once, and with --wait prints the replies of its turn.
import { randomUUID } from 'node:crypto';
import { BerthError, type AgentReply, type AgentSession, type AgentTurn } from '@berth/sdk';
import { REQUEST_KEY_CHARACTERS } from '@berth/sdk/limits';
import type { CliContext } from '../program/context.ts';
import { CliFailure, EXIT, UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import type { Input } from '../program/command-spec.ts';
import { followTurn } from './follow.ts';
import { messageText } from './message.ts';
import { openSession, requireOperation } from './session.ts';
import { exitCodeOf, replyLines } from './view.ts';

interface SendInput {
  key?: string;
  wait?: true;
}

export async function send(
  context: CliContext,
  { args: [typed, ...words], options }: Input<SendInput>,
): Promise<number> {
  const { out } = context;
  const given = checkKey(options.key);
  const { session } = await openSession(context, typed);
  if (given === undefined) requireFree(session);
  const text = await messageText(context, words);
  const turn = await deliver(context, session, text, given ?? randomUUID());
  if (options.wait !== true) {
    const { id: turnId, state, replayed } = turn;
    if (out.json) out.object({ turnId, state, ...(replayed ? { replayed } : {}) });
    else out.line(turn.id);
    return EXIT.ok;
  }
  return await waitFor(context, session, turn);
}

function checkKey(key: string | undefined): string | undefined {
  const { min, max } = REQUEST_KEY_CHARACTERS;
  if (key === undefined || new RegExp(`^[A-Za-z0-9._:-]{${min},${max}}$`).test(key)) return key;
  throw new UsageError(`--key must be ${min} to ${max} letters, digits, dots, underscores, colons or hyphens`);
}

/** A message may wake the sandbox, as its project says: the service decides that. */
function requireFree(session: AgentSession): void {
  const { communication, turnId } = session.data;
  if (communication.status === 'asleep') return;
  requireOperation(session, { operation: 'messages', doing: 'send a message' });
  if (communication.status !== 'busy' && communication.status !== 'needs_input') return;
  const how = communication.status === 'busy' ? `log --follow ${session.id}` : `answer ${session.id}`;
  throw new CliFailure(`cannot send a message: the turn ${plainText(turnId ?? '')} is active`, {
    remedy:
      `${communication.status === 'busy' ? 'wait for its end' : 'answer its approval'} with berth agent ${how}, ` +
      `or end it with berth agent interrupt ${session.id}`,
  });
}

/** Sends once. If the delivery is unknown, throws a CliFailure that names turn, key and remedy. */
async function deliver(
  { out, signal }: Pick<CliContext, 'out' | 'signal'>,
  session: AgentSession,
  text: string,
  requestKey: string,
): Promise<AgentTurn> {
  try {
    return await out.step('sending', async () => await session.send(text, { requestKey, signal }));
  } catch (error) {
    if (!signal.aborted && !isOfUnknownFate(error)) throw error;
    const remedy = resendRemedy(session.id, requestKey);
    if (signal.aborted || !(error instanceof BerthError)) {
      out.hint(`the message may have been delivered; ${remedy}`);
      throw error;
    }
    const turn = error.turnId === undefined ? '' : ` as the turn ${plainText(error.turnId)}`;
    throw new CliFailure(`the message may have been delivered${turn}: ${plainText(error.message)} (${error.code})`, {
      remedy,
      exitCode: EXIT.uncertain,
      cause: error,
    });
  }
}

/** Failures after which a message may have been delivered. */
const UNKNOWN_FATES: ReadonlySet<string> = new Set([
  ...['message_delivery_uncertain', 'connection_failed', 'timeout', 'invalid_answer', 'internal'],
]);

export function isOfUnknownFate(error: unknown): boolean {
  return error instanceof BerthError && UNKNOWN_FATES.has(error.code) && !error.unsent;
}

export function resendRemedy(sessionId: string, requestKey: string): string {
  return `send the same text again with berth agent send ${sessionId} --key ${requestKey} TEXT: it runs at most once`;
}

async function waitFor(context: CliContext, session: AgentSession, turn: AgentTurn): Promise<number> {
  const { out } = context;
  const messages: AgentReply[] = [];
  out.note(`turn ${turn.id}`);
  const show = (reply: AgentReply): void => {
    messages.push(reply);
    if (out.json) return;
    if (messages.length > 1) out.line();
    replyLines(reply).forEach((line) => out.line(line));
  };
  try {
    const end = await followTurn(context, session, turn, { show, approvals: 'ask' });
    if (out.json) out.object({ turnId: turn.id, turn: end, messages });
    return exitCodeOf(end);
  } catch (error) {
    if (out.json) out.object({ turnId: turn.id, turn: null, messages });
    const isWaiting = error instanceof CliFailure && error.exitCode === EXIT.needsYou;
    if (!isWaiting) out.hint(`the turn ${turn.id} may continue; read on with berth agent log ${session.id} --follow`);
    throw error;
  }
}
