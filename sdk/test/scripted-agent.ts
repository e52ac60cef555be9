// An agent that does what the lines of its message say, for the test server and the real service.
//
//   say TEXT   replies          fail   fails the turn
//   ask TITLE  asks; replies the decision
//   hang       until the turn is ended
import type { GuestTurn } from '@berth/protocol/agents.ts';
import { ExecRefusal } from '../../api/test/world/guests/exec-refusal.ts';
import type { AgentGuests, GuestSession } from '../../api/test/world/guests/agent-guests.ts';
import { untilTrue } from '../../os/test/until.ts';
import type { TestAgentTurn } from '../src/testing/index.ts';

type Turn = Pick<TestAgentTurn, 'text' | 'signal' | 'reply' | 'ask'>;

export async function playAgent({ text, signal, reply, ask }: Turn): Promise<void> {
  for (const line of text.split('\n')) {
    const [word = '', ...rest] = line.split(' ');
    if (word === 'fail') throw new Error('the model is not available');
    if (word === 'say') reply(rest.join(' '));
    if (word === 'ask') reply(await ask({ title: rest.join(' '), detail: 'npm test' }));
    if (word === 'hang') await new Promise((_, reject) => signal.addEventListener('abort', reject, { once: true }));
  }
}

/** Plays the agents of a test API's guests. */
export function playGuests(agents: AgentGuests): void {
  agents.after = ({ verb, vmId, sessionId }) => {
    const guest = verb === 'messages' ? agents.session(vmId, sessionId) : null;
    const message = guest?.messages.at(-1);
    if (guest !== null && message !== undefined && guest.view.turn?.state === 'running') void play(guest, message.text);
  };
}

async function play(guest: GuestSession, text: string): Promise<void> {
  const turnId = guest.view.turn?.turnId;
  const stop = new AbortController();
  const active = (): GuestTurn | null => {
    const { turn } = guest.view;
    return turn?.turnId === turnId && turn?.endedUnixMs === null ? turn : null;
  };
  const isOver = (): boolean => active() === null;
  const isInterrupted = (): boolean => active()?.state === 'interrupting';
  const leaves = untilTrue('the turn is over', () => isOver() || isInterrupted()).then(() => stop.abort());
  const ask = async (): Promise<'accept' | 'decline'> => {
    const requestId = guest.ask();
    await untilTrue('an answer', () => guest.answers.has(requestId) || stop.signal.aborted);
    const decision = guest.answers.get(requestId);
    if (decision === 'accept' || decision === 'decline') return decision;
    if (!isOver()) guest.end('canceled');
    throw new Error('canceled');
  };
  const { signal } = stop;
  const end = await playAgent({ text, signal, ask, reply: (reply) => guest.reply(reply) }).then(
    () => 'completed' as const,
    () => (isInterrupted() ? ('canceled' as const) : ('failed' as const)),
  );
  if (!isOver()) guest.end(end, end === 'failed' ? 'agent_error' : null);
  await leaves;
}

/** Loses the response to the next message, which takes effect. */
export function loseMessageResponse(agents: AgentGuests): void {
  const { after } = agents;
  agents.after = async (call) => {
    await after(call);
    if (call.verb !== 'messages') return;
    agents.after = after;
    throw new ExecRefusal('guest_unreachable', 'the guest did not respond');
  };
}

/** Ends the agent of a session, with its turn. */
export function stopGuest(agents: AgentGuests, vmId: string, sessionId: string): void {
  const guest = agents.session(vmId, sessionId);
  if (guest.view.turn !== null && guest.view.turn.endedUnixMs === null) guest.end('failed', 'agent_ended');
  guest.change({ bridge: 'stopped', bridgeReason: 'agent_ended' });
}
