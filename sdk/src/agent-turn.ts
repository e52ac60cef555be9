// A turn of an agent session: its replies and its end.
import type { Calls } from './calls/calls.ts';
import { HOLD_SECONDS } from './generated/limits.ts';
import type {
  AgentDecision,
  AgentOutputMessage as AgentReply,
  AgentPendingInput,
  AgentSession,
  AgentTurn as AgentTurnData,
  SendAgentMessageResult,
} from './generated/raw/index.ts';
import { BerthError } from './transport/errors.ts';
import { Pauses } from './transport/pauses.ts';
import { Deadline } from './transport/time.ts';
import type { CallOptions } from './transport/transport.ts';

export type { AgentDecision, AgentPendingInput, AgentReply, AgentTurnData };

/** Options of calls that follow a turn; `timeoutMs` limits the whole call, by default nothing. */
export interface FollowOptions extends CallOptions {
  /**
   * Called once for each approval that the turn waits for. The returned decision is sent; undefined
   * leaves the answer to others.
   */
  onApproval?: (approval: AgentPendingInput) => AgentDecision | undefined | Promise<AgentDecision | undefined>;
  /** Called with each record of the session that was read, before its approval is handled. */
  onSession?: (session: AgentSession) => void;
  /** Called before each repetition of a failed read, as during an outage of the service. */
  onRetry?: (error: BerthError) => void;
}

interface TurnOptions {
  sessionId: string;
  turnId: string;
  /** Cursor before the turn's replies. */
  after: string | undefined;
  /** Reports a cursor behind replies that were read. */
  onRead?: (after: string) => void;
  sent?: SendAgentMessageResult;
}

const POLL_TIMEOUT_MS = HOLD_SECONDS.max * 1_000 + 15_000;

export class AgentTurn {
  readonly id: string;
  readonly sessionId: string;
  /** State in the response to the message; undefined for a turn by id. */
  readonly state: SendAgentMessageResult['state'] | undefined;
  /** Whether the turn belongs to an earlier message with the same `requestKey`. */
  readonly replayed: boolean;
  readonly #calls: Calls;
  readonly #onRead: TurnOptions['onRead'];
  #after: string | undefined;
  /** `seq` of the last reply that was returned. */
  #seq = 0;

  /** Constructed by the SDK. */
  constructor(calls: Calls, { sessionId, turnId, after, onRead, sent }: TurnOptions) {
    this.#calls = calls;
    this.id = turnId;
    this.sessionId = sessionId;
    this.state = sent?.state;
    this.replayed = sent?.replayed === true;
    this.#after = after;
    this.#onRead = onRead;
  }

  /** Cursor behind the replies that were read; undefined before the first read. */
  get cursor(): string | undefined {
    return this.#after;
  }

  /**
   * Completed replies until the turn ends: `for await (const { text } of turn.replies())`. Another
   * call continues behind the last reply. While the sandbox sleeps, waits for its wake.
   */
  async *replies(options: FollowOptions = {}): AsyncGenerator<AgentReply, AgentTurnData, undefined> {
    return yield* this.#follow(options, true);
  }

  /** Waits for the end of the turn. Resolves for any end: check `state` and `reason`. */
  async done(options: FollowOptions = {}): Promise<AgentTurnData> {
    for (const steps = this.#follow(options, false); ;) {
      const step = await steps.next();
      if (step.done === true) return step.value;
    }
  }

  async *#follow(
    { signal, timeoutMs, onApproval, onSession, onRetry }: FollowOptions,
    reads: boolean,
  ): AsyncGenerator<AgentReply, AgentTurnData, undefined> {
    const what = `turn ${this.id}`;
    const deadline = timeoutMs === undefined ? undefined : new Deadline(timeoutMs, what, [signal]);
    const ends = deadline?.signal ?? signal ?? new AbortController().signal;
    const pauses = new Pauses(ends, onRetry);
    let revision: string | undefined;
    let asked: number | string | undefined;
    try {
      for (;;) {
        ends.throwIfAborted();
        const startedMs = Date.now();
        let session: AgentSession | undefined;
        let turn: AgentTurnData | undefined;
        try {
          session = await this.#poll(revision, ends);
          turn = this.#find(session);
          // All replies of a turn precede its end.
          if (reads && (turn.endedAt !== null || canRead(session))) yield* this.#read(ends);
        } catch (error) {
          await pauses.afterFailure(error, { isActive: turn?.endedAt === null });
          continue;
        }
        onSession?.(session);
        if (turn.endedAt !== null) return turn;
        const { pendingInput: approval } = session;
        if (onApproval !== undefined && approval?.turnId === this.id && approval.requestId !== asked) {
          asked = approval.requestId;
          const decision = await onApproval(approval);
          if (decision !== undefined) await this.#answer(asked, decision, ends);
        }
        const isNews = session.revision !== revision;
        ({ revision } = session);
        await pauses.after(isNews, Date.now() - startedMs);
      }
    } finally {
      deadline?.end();
    }
  }

  /** The session; held until it differs from a known revision. */
  async #poll(revision: string | undefined, signal: AbortSignal): Promise<AgentSession> {
    const { raw, with: set } = this.#calls;
    const held = revision === undefined ? {} : { query: { revision }, headers: { Prefer: `wait=${HOLD_SECONDS.max}` } };
    const path = { sessionId: this.sessionId };
    return await raw.getAgentSession({ path, ...held, ...set({ signal, timeoutMs: POLL_TIMEOUT_MS }) });
  }

  async *#read(signal: AbortSignal): AsyncGenerator<AgentReply, void, undefined> {
    const { raw, with: set } = this.#calls;
    for (let hasMore = true; hasMore;) {
      const query = this.#after === undefined ? {} : { after: this.#after };
      const page = await raw.getAgentOutput({ path: { sessionId: this.sessionId }, query, ...set({ signal }) });
      for (const reply of page.messages) {
        if (reply.turnId !== this.id || reply.seq <= this.#seq) continue;
        this.#seq = reply.seq;
        yield reply;
      }
      this.#after = page.nextCursor;
      this.#onRead?.(page.nextCursor);
      ({ hasMore } = page);
    }
  }

  async #answer(requestId: number | string, decision: AgentDecision, signal: AbortSignal): Promise<void> {
    const { raw, with: set } = this.#calls;
    const path = { sessionId: this.sessionId };
    try {
      await raw.answerAgentPrompt({ path, body: { requestId, decision }, ...set({ signal }) });
    } catch (error) {
      // Answered by someone else, or the turn was interrupted.
      if (!(error instanceof BerthError) || error.code !== 'agent_prompt_not_pending') throw error;
    }
  }

  #find({ recentTurns = [] }: AgentSession): AgentTurnData {
    const turn = recentTurns.find(({ turnId }) => turnId === this.id);
    if (turn !== undefined) return turn;
    throw new BerthError(
      `turn ${this.id} is not among the last ${recentTurns.length} turns of session ${this.sessionId}`,
      { code: 'unexpected_status' },
    );
  }
}

function canRead({ communication }: AgentSession): boolean {
  return communication.capabilities.includes('output');
}
