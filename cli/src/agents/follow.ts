// Follows a turn to its end: prints its replies, reports sleeps and outages, and handles approvals.
import type { AgentReply, AgentSession, AgentTurn, AgentTurnData, BerthError } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { canPrompt, NoAnswer } from '../interaction/prompt.ts';
import { CliFailure, EXIT } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { askForDecision } from './approval.ts';
import { endText } from './view.ts';

const WAITS = 'the agent waits for an answer to an approval';

type Streams = Pick<CliContext, 'out' | 'stdin' | 'stderr' | 'signal'>;

interface FollowRules {
  show: (reply: AgentReply) => void;
  /**
   * Approvals in a terminal: `ask` for a decision, or only `report` them. Elsewhere an approval
   * ends the following with {@link EXIT.needsYou}.
   */
  approvals: 'ask' | 'report';
}

/** Resolves with the ended turn, after a note about an end that is no success. */
export async function followTurn(
  streams: Streams,
  session: AgentSession,
  turn: AgentTurn,
  { show, approvals }: FollowRules,
): Promise<AgentTurnData> {
  const { out, signal } = streams;
  const notes = new Interruptions(out, session);
  const replies = turn.replies({
    signal,
    onSession: (record) => notes.read(record),
    onRetry: (error) => notes.failed(error),
    onApproval: async ({ requestId }) => {
      const remedy = `answer it with berth agent answer ${session.id}`;
      const unanswered = new CliFailure(WAITS, { exitCode: EXIT.needsYou, remedy });
      if (!canPrompt(streams)) throw unanswered;
      if (approvals === 'report') {
        out.hint(`${WAITS}; ${remedy}`);
        return undefined;
      }
      await askForDecision(streams, session, { requestId }).catch((error: unknown) => {
        throw error instanceof NoAnswer ? unanswered : error;
      });
      return undefined;
    },
  });
  for (;;) {
    const step = await replies.next();
    if (step.done !== true) {
      show(step.value);
      continue;
    }
    const end = endText(step.value);
    if (end !== null) out.note(end);
    return step.value;
  }
}

/** Reports the begin and the end of sleeps and outages, each once. */
class Interruptions {
  readonly #out: Streams['out'];
  readonly #session: AgentSession;
  #isAsleep = false;
  #isOut = false;

  constructor(out: Streams['out'], session: AgentSession) {
    this.#out = out;
    this.#session = session;
  }

  read({ communication, sandboxId }: AgentSession['data']): void {
    if (this.#isOut) this.#out.note('the service responds again');
    this.#isOut = false;
    const isAsleep = communication.status === 'asleep';
    if (isAsleep === this.#isAsleep) return;
    this.#isAsleep = isAsleep;
    this.#out.hint(
      isAsleep
        ? `the sandbox is not awake; the turn continues after berth sandbox wake ${sandboxId}`
        : 'the sandbox is awake; the turn continues',
    );
  }

  failed(error: BerthError): void {
    if (this.#isOut || error.code === 'sandbox_state_conflict') return;
    this.#isOut = true;
    this.#out.note(`${plainText(error.message)}; retrying. The turn of ${this.#session.id} continues meanwhile`);
  }
}
