// Calls about agent sessions, live ones among them, with every kind of credential.
import type { AgentSession } from '@berth/contract/agents/sessions.ts';
import type { Random } from '../../world/random.ts';
import { call, type Caller } from '../../world/client.ts';
import { TOKEN_NAMES, type FuzzKind, type FuzzRequest, type FuzzWorld, type Turn } from '../core/kind.ts';
import { escaped, oddLength, oddText } from '../core/odd-values.ts';

/** An id that nothing has. */
const UNKNOWN_SESSION_ID = `ags_${'a'.repeat(24)}`;
const SCRIPTS = [
  'say yes',
  'stream 5 1',
  'ask for it',
  'ask-twice now',
  'run id',
  'fail',
  'large 200000',
  'hang',
] as const;
const START_ATTEMPTS = 3;
const ODD_VALUES = ['', '0', '-1', '101', '1e9', 'x', '1.5', '99999999999999999999', 'a.b.c', '\u0000'] as const;

export const agentSessions: FuzzKind = {
  name: 'agent-sessions',
  weight: 30,
  run: async (turn) => {
    const request = sessionRequest(turn);
    const answer = await turn.send({ ...request, headers: { ...credential(turn), ...request.headers } });
    if (answer?.status !== 200 || !request.target.endsWith('answering')) return;
    const { pendingInput } = answer.body as AgentSession;
    if (pendingInput == null) return;
    const body = JSON.stringify({ requestId: pendingInput.requestId, decision: decision(turn.random) });
    await turn.send({ ...request, method: 'POST', target: request.target.replace(/[?].*/, '/answer'), body });
  },
};

/** Creates a session. On a loaded host a start may take longer than its call waits (503). */
export async function startSession(caller: Caller, sandboxId: string): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    const { status, body } = await call(caller, 'POST', `/v1/sandboxes/${sandboxId}/agent-sessions`);
    if (status === 201) return (body as AgentSession).id;
    if (status !== 503 || attempt === START_ATTEMPTS) throw new Error(`no agent session: ${JSON.stringify(body)}`);
  }
}

/** Mostly one of the run's credentials. */
export function credential({ random, world }: Turn): Record<string, string> {
  if (random.chance(0.04)) return { authorization: random.pick(['Bearer nobody', 'Basic eDp5', 'Bearer ']) };
  return { authorization: `Bearer ${world.tokens[random.pick(TOKEN_NAMES)]}` };
}

const decision = (random: Random): string => random.pick(['accept', 'decline', 'cancel']);

function sessionRequest({ random, world, name }: Turn): FuzzRequest {
  const session = `/v1/agent-sessions/${idOf(random, world)}`;
  const held = random.chance(0.1)
    ? { headers: { prefer: random.pick(['wait=1', 'wait=0', 'wait=26', 'wait=x']) } }
    : {};
  const odd = (): string => escaped(random, random.pick(ODD_VALUES));
  const post = (path: string, body?: string): FuzzRequest => ({
    method: 'POST',
    target: session + path,
    ...(body === undefined ? {} : { body }),
  });
  const page = (): string =>
    random.pick(['', `?after=${odd()}`, `?limit=${odd()}`, `?limit=${random.integer(1, 100)}`, '?after=&limit=1']);
  switch (
    random.weighted({
      get: 14,
      list: 8,
      send: 30,
      output: 16,
      turns: 8,
      answer: 10,
      interrupt: 8,
      recover: 5,
      create: 1,
    })
  ) {
    case 'get':
      return {
        method: 'GET',
        target: `${session}${random.pick(['', '?detail=full', `?detail=${odd()}`, '?answering'])}`,
        ...held,
      };
    case 'list':
      return { method: 'GET', target: `/v1/agent-sessions${listQuery(random, world, odd)}` };
    case 'send':
      return post('/messages', messageBody(random, name));
    case 'output':
      return { method: 'GET', target: `${session}/output${page()}`, ...held };
    case 'turns':
      return { method: 'GET', target: `${session}/turns${page()}` };
    case 'answer':
      return post('/answer', answerBody(random));
    case 'interrupt':
      return post('/interrupt', random.chance(0.1) ? '{"x":1}' : undefined);
    case 'recover':
      return post('/recover');
    default:
      return { method: 'POST', target: `/v1/sandboxes/${random.pick(world.away as [string])}/agent-sessions` };
  }
}

function idOf(random: Random, { sessions }: FuzzWorld): string {
  if (random.chance(0.93)) return random.pick(sessions as [string]);
  return random.pick([UNKNOWN_SESSION_ID, 'x', 'ags_', '%00', encodeURIComponent('é/..'), 'a'.repeat(300)]);
}

function listQuery(random: Random, { awake, away, caller }: FuzzWorld, odd: () => string): string {
  const sandboxes = [...awake, ...away] as unknown as [string];
  return random.pick([
    '',
    `?sandboxId=${random.pick(sandboxes)}`,
    `?orgId=${caller.orgId}&limit=${random.integer(1, 100)}`,
    `?projectId=${caller.projectId}&needsYou=true`,
    `?orgId=${odd()}`,
    `?projectId=${odd()}&needsYou=${odd()}`,
    `?limit=${odd()}&after=${odd()}`,
    `?sandboxId=${odd()}`,
  ]);
}

function messageBody(random: Random, name: string): string {
  const text = random.pick<() => unknown>([
    () => random.pick(SCRIPTS),
    () => random.pick(SCRIPTS),
    () => oddText(random, Math.min(oddLength(random), 200_000)),
    () => random.pick<unknown>([null, 0, '', [], {}, 'x'.repeat(131_073), '\u0000', '\u2028']),
  ])();
  const requestKey = random.pick<unknown>([
    undefined,
    ...[undefined, `key-${name}`.padEnd(8, '0'), 'a-shared-key'],
    ...['short', 'x'.repeat(129), 'with space', null, 7],
  ]);
  const more = random.chance(0.04) ? { surprise: true } : {};
  const body = JSON.stringify({ text, requestKey, ...more });
  return random.chance(0.05) ? body.slice(0, random.integer(0, body.length - 1)) : body;
}

function answerBody(random: Random): string {
  const requestId = random.pick<unknown>([1, 2, 3, '1', 0, -1, 1.5, 2 ** 53, 1e308, '', 'x'.repeat(201), null, {}]);
  const chosen = random.chance(0.8) ? decision(random) : random.pick<unknown>(['', 'yes', 0, null]);
  return JSON.stringify(random.chance(0.95) ? { requestId, decision: chosen } : { requestId });
}
