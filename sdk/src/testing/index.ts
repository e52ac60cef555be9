// `@berth/sdk/testing`: an in-memory server for tests, without network and VMs.
import { Berth, type BerthOptions } from '../berth.ts';
import { BerthError } from '../transport/errors.ts';
import { unlessAborted } from '../transport/time.ts';
import { NDJSON } from '../transport/transport.ts';
import type { AgentScript } from './agent-script.ts';
import type { CommandHandler } from './answering.ts';
import type { ProcessScript } from './process-script.ts';
import { ANSWERS, makeApiKey } from './answers.ts';
import { Refusal, type KnownCode } from './requests/refusal.ts';
import { findRoute, readRequest, type TestRoute } from './requests/request.ts';
import type { AgentBridgeReason } from '../generated/raw/index.ts';
import { useOfLink } from './file-answers.ts';
import { newId } from './ids.ts';
import { TestState, type Caller } from './state.ts';

export type { AgentScript, TestAgentTurn, TestApproval } from './agent-script.ts';
export type { CommandHandler } from './answering.ts';
export type { CommandOutcome } from './figures.ts';
export type { ProcessScript, TestProcess, TestProcessEnd } from './process-script.ts';
export type { KnownCode } from './requests/refusal.ts';

export interface TestServerOptions {
  /** Replaces the shell of every sandbox. By default, commands exit with 127. */
  exec?: CommandHandler;
  /** Plays the agent of every sandbox. By default, it replies with a hint. */
  agent?: AgentScript;
  /** Plays the processes of every sandbox. By default, `exec` runs their commands. */
  process?: ProcessScript;
  /** Duration of transitions in milliseconds, by default 0. */
  transitionMs?: number;
  /** Maximum number of awake sandboxes, by default unlimited. */
  concurrentSandboxes?: number;
  /** Clock of the server, by default `Date.now`. */
  now?: () => number;
}

/** A failure instead of the normal response. */
export interface ScriptedFailure {
  /** Only requests with this method. */
  method?: string;
  /** Only requests whose path contains this. */
  path?: string;
  /**
   * An error code of the contract. `connection` breaks the connection before the request is carried
   * out, `lost-answer` after it. `message_delivery_uncertain` delivers the message.
   */
  with: KnownCode | 'connection' | 'lost-answer';
  /** Number of requests, by default 1. */
  times?: number;
  /** `Retry-After` in seconds. */
  retryAfter?: number;
}

export interface SeenRequest {
  method: string;
  path: string;
  body: unknown;
}

const URL_OF_TESTS = 'http://berth.test';
const API_KEY = 'brt_of_tests';
const SESSION_TOKEN = 'session_of_tests';

/** Failures after, or without, the effect of the request. */
const CARRIED_OUT: ReadonlySet<string> = new Set(['connection', 'lost-answer', 'message_delivery_uncertain']);

/** Streams into sandboxes are not simulated. */
// oxlint-disable-next-line typescript/no-extraneous-class -- the SDK takes a class
class NoWebSocket {
  constructor() {
    throw new BerthError('the test server has no streams: pass WebSocket to client()', { code: 'configuration' });
  }
}

/**
 * An in-memory service: one org, one project with `useCase: 'external'`, an API key and a session
 * token of its owner.
 *
 * ```ts
 * const exec = (command: string) => (command === 'make' ? 'done\n' : { exitCode: 127 });
 * const server = new TestServer({ exec });
 * const berth = server.client();
 * ```
 */
export class TestServer {
  readonly url = URL_OF_TESTS;
  /** Has no scopes: may do everything an API key may. */
  readonly apiKey = API_KEY;
  /** For routes closed to API keys. */
  readonly sessionToken = SESSION_TOKEN;
  /** All received requests, oldest first. */
  readonly requests: SeenRequest[] = [];
  /** Runs the commands of all sandboxes; can be replaced at any time. */
  exec: CommandHandler;
  /** Plays the agent in later turns of all sandboxes; can be replaced at any time. */
  agent: AgentScript;
  /** Plays later processes of all sandboxes; can be replaced at any time. */
  process: ProcessScript | undefined;
  readonly #state = new TestState();
  readonly #options: TestServerOptions;
  readonly #projectId: string;
  readonly #failures: (ScriptedFailure & { times: number })[] = [];

  constructor(options: TestServerOptions = {}) {
    this.#options = options;
    this.exec = options.exec ?? (() => ({ exitCode: 127, stderr: 'the test server runs no commands: pass `exec`\n' }));
    this.agent = options.agent ?? ((turn) => turn.reply('the test server has no agent: pass `agent`'));
    this.process = options.process;
    this.#projectId = this.#state.makeProject({ name: 'Test project', useCase: 'external' }, this.#now()).id;
    makeApiKey(this.#state, API_KEY, { name: 'tests', scopes: null, days: null }, this.#now());
    this.#state.callers.set(SESSION_TOKEN, { kind: 'session', keyId: null, scopes: null });
  }

  get orgId(): string {
    return this.#state.org.id;
  }

  get projectId(): string {
    return this.#projectId;
  }

  /** Returns a client with the server's key and project. */
  client(options: Omit<BerthOptions, 'url' | 'fetch'> = {}): Berth {
    const { apiKey, url, fetch } = this;
    return new Berth({ apiKey, projectId: this.#projectId, WebSocket: NoWebSocket, ...options, url, fetch });
  }

  /** Makes the next matching requests fail. */
  failNext(failure: ScriptedFailure): void {
    this.#failures.push({ times: 1, ...failure });
  }

  /** Fails a sandbox by losing its VM; it can be woken from its disk. */
  loseMachine(sandboxId: string, code = 'machine_lost', message = 'its machine was lost'): void {
    this.#state.sandbox(sandboxId, this.#now()).fail(this.#now(), code, message);
    for (const session of this.#state.agentSessions.values())
      if (session.sandbox.id === sandboxId) session.stop('machine_lost');
  }

  /** Stops the agent of a session; an active turn fails. The session can be recovered. */
  stopAgent(sessionId: string, reason: AgentBridgeReason = 'agent_ended'): void {
    const session = this.#state.agentSessions.get(sessionId);
    if (session === undefined) throw new Error(`the test server has no agent session ${sessionId}`);
    session.stop(reason);
  }

  /** Responds like the service; pass it as any `fetch`. */
  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, init);
    // In Node 20, the signal of a request that is garbage never aborts.
    const signal = init?.signal ?? request.signal;
    const bytes = new Uint8Array(await request.arrayBuffer());
    const url = new URL(request.url);
    const body = parsed(new TextDecoder().decode(bytes));
    this.requests.push({ method: request.method, path: url.pathname + url.search, body });
    signal.throwIfAborted();
    const scripted = this.#scripted(request.method, url.pathname);
    if (scripted?.with === 'connection')
      throw new TypeError('fetch failed', { cause: new Error('the connection was broken') });
    const headers = new Headers({ 'content-type': 'application/json; charset=utf-8', 'x-request-id': newId('req') });
    const answer = this.#answer(request, url, bytes, { headers, signal, scripted });
    const [status, result] = await unlessAborted(signal, answer);
    if (scripted?.with === 'lost-answer')
      throw new TypeError('fetch failed', { cause: new Error('the connection was broken') });
    return new Response(request.method === 'HEAD' ? null : contentOf(result, headers), { status, headers });
  };

  async #answer(
    request: Request,
    url: URL,
    bytes: Uint8Array,
    { headers, signal, scripted }: { headers: Headers; signal: AbortSignal; scripted: ScriptedFailure | undefined },
  ): Promise<[number, unknown]> {
    try {
      if (scripted !== undefined && !CARRIED_OUT.has(scripted.with)) {
        throw new Refusal(
          scripted.with as KnownCode,
          undefined,
          scripted.retryAfter === undefined ? {} : { 'retry-after': String(scripted.retryAfter) },
        );
      }
      const { call, caller, answer } =
        useOfLink(request, url, bytes, { state: this.#state, nowMs: this.#now() }) ?? this.#called(request, url, bytes);
      const { route } = call;
      if (answer === undefined) throw new Refusal('route_not_found', `the test server does not have ${route.name}`);
      const { transitionMs = 0, concurrentSandboxes = null } = this.#options;
      const requestId = headers.get('x-request-id') ?? '';
      const about = {
        state: this.#state,
        caller,
        origin: this.url,
        exec: this.exec,
        agent: this.agent,
        process: this.process,
        signal,
        nowMs: this.#now(),
        now: () => this.#now(),
        transitionMs,
        concurrentSandboxes,
        requestId,
        headers,
      };
      const result = structuredClone(await answer(call, about));
      if (route.method !== 'GET') this.#state.changed();
      if (scripted?.with === 'message_delivery_uncertain')
        throw new Refusal(scripted.with, undefined, {}, (result as { turnId?: string }).turnId);
      return [headers.has('content-range') ? 206 : route.status, result];
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      for (const [name, value] of Object.entries(error.headers)) headers.set(name, value);
      const { message, code, turnId } = error;
      return [error.status, { error: { message, code, ...(turnId === undefined ? {} : { turnId }) } }];
    }
  }

  #called(request: Request, url: URL, bytes: Uint8Array) {
    const { route, params } = findRoute(request.method, url.pathname);
    const caller = this.#authenticate(route, request.headers);
    if (params['orgId'] !== undefined) this.#state.requireOrg(params['orgId']);
    const { headers } = request;
    const call = { route, params, headers, ...readRequest(route, url, headers, bytes) };
    return { call, caller, answer: ANSWERS[route.name] };
  }

  #authenticate(route: TestRoute, headers: Headers): Caller | null {
    if (route.auth.length === 0) return null;
    const token = /^Bearer (.+)$/.exec(headers.get('authorization') ?? '')?.[1];
    const caller = token === undefined ? undefined : this.#state.callers.get(token);
    if (caller === undefined) throw new Refusal('unauthenticated', undefined, { 'www-authenticate': 'Bearer' });
    if (!(route.auth as readonly string[]).includes(caller.kind)) throw new Refusal('auth_kind_not_allowed');
    if (route.permission !== null && caller.scopes !== null && !caller.scopes.includes(route.permission))
      throw new Refusal('permission_denied', `the permission ${route.permission} is needed`);

    return caller;
  }

  #scripted(method: string, path: string): ScriptedFailure | undefined {
    const found = this.#failures.find((one) => (one.method ?? method) === method && path.includes(one.path ?? ''));
    if (found !== undefined && (found.times -= 1) === 0) this.#failures.splice(this.#failures.indexOf(found), 1);
    return found;
  }

  #now(): number {
    return this.#options.now?.() ?? Date.now();
  }
}

function contentOf(body: unknown, headers: Headers): string | Uint8Array<ArrayBuffer> {
  if (body instanceof Uint8Array) {
    headers.set('content-type', 'application/octet-stream');
    headers.set('content-length', String(body.length));
    return body as Uint8Array<ArrayBuffer>;
  }
  if (headers.get('content-type') !== NDJSON) return JSON.stringify(body);
  return (body as unknown[]).map((entry) => `${JSON.stringify(entry)}\n`).join('');
}

function parsed(text: string): unknown {
  try {
    return text === '' ? undefined : (JSON.parse(text) as unknown);
  } catch {
    return text;
  }
}
