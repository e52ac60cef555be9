// A conversation with the coding agent of a sandbox: its record and operations.
import { AgentTurn, type AgentDecision } from './agent-turn.ts';
import type { Calls } from './calls/calls.ts';
import { newKey } from './calls/new-key.ts';
import { AGENT_WAKE_WAIT_MS } from './generated/limits.ts';
import type {
  AgentOperation,
  AgentSession as AgentSessionData,
  AnswerAgentPromptResult as AgentAnswer,
  GetAgentOutputData,
  GetAgentOutputResult as AgentOutputPage,
  ListAgentTurnsData,
  ListAgentTurnsResult as AgentTurnsPage,
} from './generated/raw/index.ts';
import { BerthError, errorWith } from './transport/errors.ts';
import { held, whileHeld } from './transport/held.ts';
import type { CallOptions } from './transport/transport.ts';

export type { AgentAnswer, AgentOutputPage, AgentSessionData, AgentTurnsPage };

export interface RefreshOptions extends CallOptions {
  /** `full`: up to 128 KiB of the pending approval's detail, with its working directory. */
  detail?: 'short' | 'full';
  /** Seconds, at most 25, for which the response is held while the session has not changed. */
  waitSeconds?: number;
}

export interface MessageOptions extends CallOptions {
  /**
   * 8 to 128 letters, digits, `.`, `_`, `:` and `-`; by default a random key. Sending the same text
   * with the same key again returns the first turn. `null` sends none.
   */
  requestKey?: string | null;
}

/** The service waits up to 60 s for the agent. */
const RECOVER_TIMEOUT_MS = 90_000;
/** Includes the time of a wake. */
const SEND_TIMEOUT_MS = AGENT_WAKE_WAIT_MS + 40_000;

export class AgentSession {
  readonly id: string;
  readonly #calls: Calls;
  /** Cursor behind the replies that were read. */
  #after: string | undefined;
  #data: AgentSessionData;

  /** Constructed by the SDK. */
  constructor(calls: Calls, data: AgentSessionData) {
    this.#calls = calls;
    this.id = data.id;
    this.#data = data;
  }

  /** Record of the last response. */
  get data(): AgentSessionData {
    return this.#data;
  }

  /**
   * Whether the service allowed the operation at the last response: `messages`, `output`,
   * `approvals`, `interruption` or `recovery`.
   */
  can(operation: AgentOperation | (string & {})): boolean {
    return this.#data.communication.capabilities.includes(operation);
  }

  /** Requests the current record. With `waitSeconds`, waits for a change. */
  async refresh({ detail, waitSeconds, ...options }: RefreshOptions = {}): Promise<this> {
    const { raw, with: set } = this.#calls;
    const { revision } = this.#data;
    const query = { ...(detail === undefined ? {} : { detail }), ...(waitSeconds === undefined ? {} : { revision }) };
    const call = { path: { sessionId: this.id }, query, ...held(waitSeconds), ...set(whileHeld(waitSeconds, options)) };
    this.#data = await raw.getAgentSession(call);
    return this;
  }

  /**
   * Sends a message and returns its turn. Wakes a stopped sandbox whose project has `wakeOnUse`.
   * Never retried: after a failure whose error is `retryable`, send the same text again with the
   * error's `requestKey`. It runs at most once.
   */
  async send(text: string, { requestKey = newKey(), ...options }: MessageOptions = {}): Promise<AgentTurn> {
    const { raw, with: set } = this.#calls;
    const key = requestKey ?? undefined;
    // Another turn's reader may pass the first replies of this one before the response is here.
    const after = this.#after;
    const whenLost =
      key === undefined
        ? 'The message may have been delivered: inspect the session before you send it again.'
        : `The message may have been delivered. Send it again with the requestKey ${key}: it runs at most once.`;
    const notes = { timeoutMs: SEND_TIMEOUT_MS, ...options, whenLost, repeatable: key !== undefined };
    const body = key === undefined ? { text } : { text, requestKey: key };
    try {
      const sent = await raw.sendAgentMessage({ path: { sessionId: this.id }, body, ...set(notes) });
      const { turnId, replayed } = sent;
      const onRead = (cursor: string): void => void (this.#after = cursor);
      const place = replayed === true ? { after: undefined } : { after, onRead };
      return new AgentTurn(this.#calls, { sessionId: this.id, turnId, sent, ...place });
    } catch (error) {
      throw error instanceof BerthError ? errorWith(error, { requestKey: key }) : error;
    }
  }

  /**
   * A turn by id, such as `turnId` of an error, without a request. `after`: a cursor; its replies
   * before that are not read.
   */
  turn(turnId: string, { after }: { after?: string | undefined } = {}): AgentTurn {
    return new AgentTurn(this.#calls, { sessionId: this.id, turnId, after });
  }

  /** One page of the turns with their messages, oldest first. The sandbox must be awake. */
  async turns(
    query: NonNullable<ListAgentTurnsData['query']> = {},
    options: CallOptions = {},
  ): Promise<AgentTurnsPage> {
    const { raw, with: set } = this.#calls;
    return await raw.listAgentTurns({ path: { sessionId: this.id }, query, ...set(options) });
  }

  /**
   * One page of the completed replies behind a cursor, oldest first; with `waitSeconds`, held until
   * there is one. The sandbox must be awake. {@link AgentTurn.replies} reads those of a turn.
   */
  async output(
    query: NonNullable<GetAgentOutputData['query']> = {},
    { waitSeconds, ...options }: CallOptions & { waitSeconds?: number } = {},
  ): Promise<AgentOutputPage> {
    const { raw, with: set } = this.#calls;
    const settings = set(whileHeld(waitSeconds, options));
    return await raw.getAgentOutput({ path: { sessionId: this.id }, query, ...held(waitSeconds), ...settings });
  }

  /** Answers the pending approval. The first answer counts; repeating it succeeds. */
  async answer(requestId: number | string, decision: AgentDecision, options: CallOptions = {}): Promise<AgentAnswer> {
    const { raw, with: set } = this.#calls;
    const whenLost = 'The answer may have been given. The same answer can be given again.';
    const notes = { ...options, whenLost, repeatable: true };
    return await raw.answerAgentPrompt({ path: { sessionId: this.id }, body: { requestId, decision }, ...set(notes) });
  }

  /** Requests the end of the active turn and of its commands; wait for it with `turn.done()`. */
  async interrupt(options: CallOptions = {}): Promise<AgentTurn> {
    const { raw, with: set } = this.#calls;
    const { turnId } = await raw.interruptAgentTurn({ path: { sessionId: this.id }, ...set(options) });
    return this.turn(turnId);
  }

  /**
   * Restarts a stopped session with its conversation and waits until it is ready. A ready one stays
   * as it is. Replays nothing.
   */
  async recover(options: CallOptions = {}): Promise<this> {
    const { raw, with: set } = this.#calls;
    const whenLost = 'The session may have been recovered. A recover can be repeated.';
    const notes = { timeoutMs: RECOVER_TIMEOUT_MS, ...options, whenLost, repeatable: true };
    this.#data = await raw.recoverAgentSession({ path: { sessionId: this.id }, ...set(notes) });
    return this;
  }
}
