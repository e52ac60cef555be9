// Plan of the agent clients of a chaos run: operations on agent sessions, as data that follows from
// the seed alone. `pick` selects the session, or the turn, when its operation comes.
import type { Random } from '../../world/random.ts';

/** Work of a turn: a script of the scripted agent, with its replies. */
export type Work =
  | { kind: 'say' | 'endless' | 'ask' | 'fail' }
  | { kind: 'stream' | 'tool'; steps: number; ms: number };

export type AgentOperation = { pauseMs: number; pick: number } & (
  | { kind: 'start' | 'get' | 'interrupt' | 'recover' | 'sleep' | 'wake' }
  /** `twice`: two clients send it at once. `keyed`: with a requestKey. */
  | { kind: 'send'; work: Work; twice: boolean; keyed: boolean }
  | { kind: 'resend'; turn: number; otherText: boolean }
  | { kind: 'answer'; decision: 'accept' | 'decline' | 'cancel' }
  | { kind: 'poll'; reader: number; limit: number; holdSeconds: number }
);

const WEIGHTS: Readonly<Record<AgentOperation['kind'], number>> = {
  start: 4,
  send: 32,
  resend: 10,
  answer: 9,
  interrupt: 8,
  poll: 24,
  get: 6,
  recover: 6,
  sleep: 2,
  wake: 6,
};

/** Clients of a session, each with its own cursor. */
export const READERS = 2;

export function* agentOperationsOf(random: Random): Generator<AgentOperation, never> {
  for (;;) yield operation(random);
}

function operation(random: Random): AgentOperation {
  const kind = random.weighted(WEIGHTS);
  const common = { pauseMs: random.integer(0, 300), pick: random.next() };
  switch (kind) {
    case 'send':
      return { kind, ...common, work: work(random), twice: random.chance(0.3), keyed: random.chance(0.85) };
    case 'resend':
      return { kind, ...common, turn: random.next(), otherText: random.chance(0.15) };
    case 'answer':
      return { kind, ...common, decision: random.pick(['accept', 'decline', 'cancel'] as const) };
    case 'poll':
      return {
        kind,
        ...common,
        reader: random.integer(0, READERS - 1),
        limit: random.integer(1, 20),
        holdSeconds: random.chance(0.2) ? random.integer(1, 3) : 0,
      };
    default:
      return { kind, ...common };
  }
}

function work(random: Random): Work {
  const kind = random.weighted({ say: 5, stream: 5, tool: 3, endless: 1, ask: 3, fail: 1 });
  if (kind === 'stream') return { kind, steps: random.integer(1, 12), ms: random.integer(1, 250) };
  return kind === 'tool' ? { kind, steps: 1, ms: random.integer(100, 2_000) } : { kind };
}

/** Life of a command that never ends by itself, in seconds; the number of the turn follows it. */
const ENDLESS_SECONDS = 86_000;

/** The message of a turn. `number`: unique in the sandbox. */
export function scriptOf(work: Work, number: number): string {
  switch (work.kind) {
    case 'say':
      return `say turn ${number}`;
    case 'stream':
      return `say turn ${number}\nstream ${work.steps} ${work.ms}`;
    case 'tool':
      return `run sleep ${work.ms / 1_000}; echo turn ${number}`;
    case 'endless':
      return `say turn ${number}\nrun sleep ${ENDLESS_SECONDS}.${number}`;
    case 'ask':
      return `ask for turn ${number}\nsay turn ${number}`;
    default:
      return `say turn ${number}\nfail on purpose`;
  }
}

/** Replies of the completed turn; null: they depend on answers, or on the end of a command. */
export function repliesOf(work: Work, number: number): string[] | null {
  const first = `turn ${number}`;
  switch (work.kind) {
    case 'stream':
      return [first, ...Array.from({ length: work.steps }, (_, index) => `reply ${index + 1}`)];
    case 'tool':
      return [`${first}\n`];
    case 'ask':
    case 'endless':
      return null;
    default:
      return [first];
  }
}

/** Prints executed turns, and the turns whose endless command runs. */
export const EFFECTS = `cat ~/agent-effects 2>/dev/null
pgrep -fa '^sleep ${ENDLESS_SECONDS}[.]' | sed 's/.*[.]/running /'
echo end`;

/** Null if the output is incomplete. */
export function parseEffects(stdout: string): { effects: string[]; running: number[] } | null {
  const lines = stdout.split('\n').filter(Boolean);
  if (lines.at(-1) !== 'end') return null;
  const running = lines.flatMap((line) => (line.startsWith('running ') ? [Number(line.slice(8))] : []));
  return { effects: lines.filter((line) => line.startsWith('trn_')), running };
}
