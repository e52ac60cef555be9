// Agent sessions: conversations with the coding agents of sandboxes. Loaded on first use.
import type { AgentSession, AgentSessionData } from './agent-session.ts';
import type { Calls } from './calls/calls.ts';
import type { ListAgentSessionsData } from './generated/raw/index.ts';
import type { CallOptions } from './transport/transport.ts';

/** Filters by org, project, sandbox or `needsYou`; `limit` is the page length. */
export type AgentSessionsQuery = Omit<NonNullable<ListAgentSessionsData['query']>, 'needsYou'> & {
  /** Only sessions that wait for a person, or do not. */
  needsYou?: boolean;
};

export interface AgentSessionsPage {
  sessions: AgentSession[];
  /** Pass as `after` for the next page. */
  nextCursor: string | null;
  hasMore: boolean;
}

/** Timeout of a create. The service waits up to 60 s for the agent. */
const START_TIMEOUT_MS = 90_000;
const WHEN_LOST =
  'The session may have been created. List the sessions of the sandbox before you retry ' +
  '(`sandbox.agents.list()`).';

export class Agents {
  readonly #calls: Calls;

  /** Constructed by the SDK. */
  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /**
   * Starts a conversation with the agent of a sandbox and waits until it is ready. Wakes a stopped
   * sandbox whose project has `wakeOnUse`.
   */
  async start(sandboxId: string, options: CallOptions = {}): Promise<AgentSession> {
    const { raw, with: set } = this.#calls;
    const notes = { timeoutMs: START_TIMEOUT_MS, ...options, whenLost: WHEN_LOST };
    return await this.#session(await raw.createAgentSession({ path: { sandboxId }, ...set(notes) }));
  }

  /**
   * One page of the sessions that the credential may read, in all orgs, newest first. Wakes
   * nothing: states are the last known ones.
   */
  async list(filter: AgentSessionsQuery = {}, options: CallOptions = {}): Promise<AgentSessionsPage> {
    const { raw, with: set } = this.#calls;
    // Sent as a text, which a boolean becomes.
    const query: Omit<AgentSessionsQuery, 'needsYou'> = filter;
    const { sessions, nextCursor, hasMore } = await raw.listAgentSessions({ query, ...set(options) });
    return { sessions: await Promise.all(sessions.map((data) => this.#session(data))), nextCursor, hasMore };
  }

  /** All sessions across pages: `for await (const session of berth.agents.all())`. */
  async *all(query: AgentSessionsQuery = {}, options: CallOptions = {}): AsyncGenerator<AgentSession, void, undefined> {
    for (let { after } = query; ;) {
      const page = await this.list(after === undefined ? query : { ...query, after }, options);
      yield* page.sessions;
      if (!page.hasMore || page.nextCursor === null) return;
      after = page.nextCursor;
    }
  }

  /** Returns a session, with its current state if its sandbox is awake. */
  async get(sessionId: string, options: CallOptions = {}): Promise<AgentSession> {
    const { raw, with: set } = this.#calls;
    return await this.#session(await raw.getAgentSession({ path: { sessionId }, ...set(options) }));
  }

  async #session(data: AgentSessionData): Promise<AgentSession> {
    const { AgentSession } = await import('./agent-session.ts');
    return new AgentSession(this.#calls, data);
  }
}

/** Agent sessions of one sandbox. */
export class SandboxAgents {
  readonly #agents: Agents;
  readonly #sandboxId: string;

  /** Constructed by the SDK. */
  constructor(calls: Calls, sandboxId: string) {
    this.#agents = new Agents(calls);
    this.#sandboxId = sandboxId;
  }

  /** Starts a conversation with the sandbox's agent: {@link Agents.start}. */
  async start(options: CallOptions = {}): Promise<AgentSession> {
    return await this.#agents.start(this.#sandboxId, options);
  }

  /** Lists the sandbox's sessions, newest first. */
  async list(options: CallOptions = {}): Promise<AgentSession[]> {
    const sessions: AgentSession[] = [];
    for await (const session of this.#agents.all({ sandboxId: this.#sandboxId }, options)) sessions.push(session);
    return sessions;
  }
}
