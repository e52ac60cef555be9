// The client: settings, and the parts of the API.
import { Activity } from './activity.ts';
import { Agents } from './agents.ts';
import { ApiKeys } from './api-keys.ts';
import { Calls } from './calls/calls.ts';
import { Hosts } from './hosts.ts';
import { readVariable } from './transport/environment.ts';
import { BerthError } from './transport/errors.ts';
import { RawClient, type Identity, type Org } from './generated/raw/index.ts';
import { createClient } from './generated/raw/client/index.ts';
import { Projects } from './projects.ts';
import { Sandboxes } from './sandboxes.ts';
import type { WebSocketConstructor } from './streams/web-socket.ts';
import { Usage } from './usage.ts';
import { bodyOf, queryOf } from './transport/query.ts';
import { Transport, type CallOptions, type Credential } from './transport/transport.ts';

export type { Identity, Org };

/** Options of a client; all have defaults. */
export interface BerthOptions {
  /** API key or session token, or a function called for each request. Default: `BERTH_API_KEY`. */
  apiKey?: Credential;
  /** URL of the service. Default: `BERTH_URL`, or `http://127.0.0.1:4800`. */
  url?: string;
  /** Default: `BERTH_ORG_ID`, or the only org of the caller. */
  orgId?: string;
  /** Project of new sandboxes whose spec names none. Default: `BERTH_PROJECT_ID`. */
  projectId?: string;
  /**
   * Timeout of a call in milliseconds, default 30000. Commands and transitions have longer
   * defaults.
   */
  timeoutMs?: number;
  /** Retries of a GET or HEAD after a temporary failure, default 3. Writes are never retried. */
  maxRetries?: number;
  /** Replaces the global `fetch`. */
  fetch?: typeof globalThis.fetch;
  /**
   * WebSocket of streams; default: the global one, which Node 20 lacks: pass that of the npm
   * package `ws`.
   */
  WebSocket?: WebSocketConstructor;
}

const DEFAULT_URL = 'http://127.0.0.1:4800';
const TIMEOUT_MS = 30_000;
const MAX_RETRIES = 3;

/** Client of one service. */
export class Berth {
  readonly sandboxes: Sandboxes;
  /** Conversations with the coding agents of all sandboxes. */
  readonly agents: Agents;
  readonly projects: Projects;
  readonly keys: ApiKeys;
  readonly activity: Activity;
  readonly usage: Usage;
  /** Hosts of the installation, for its operator. */
  readonly hosts: Hosts;
  /** Every route of the API as a typed function. Throws {@link BerthError}. */
  readonly raw: RawClient;
  /** URL of the service. */
  readonly url: string;
  readonly #calls: Calls;

  constructor(options: BerthOptions = {}) {
    const credential = options.apiKey ?? readVariable('BERTH_API_KEY');
    if (credential === undefined || credential === '') {
      throw new BerthError('no API key: pass apiKey to new Berth(), or set BERTH_API_KEY', {
        code: 'configuration',
      });
    }

    this.url = addressOf(options.url ?? readVariable('BERTH_URL') ?? DEFAULT_URL);
    // Looked up per call, so that tests can replace the global.
    const fetch: typeof globalThis.fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    const { timeoutMs = TIMEOUT_MS, maxRetries = MAX_RETRIES } = options;
    const transport = new Transport({ credential, fetch, timeoutMs, maxRetries });
    this.raw = new RawClient({
      client: createClient({
        ...{ baseUrl: this.url, fetch: transport.fetchFor(), throwOnError: true },
        ...{ querySerializer: queryOf, bodySerializer: bodyOf },
      }),
    });
    this.#calls = new Calls({
      raw: this.raw,
      transport,
      orgId: options.orgId ?? readVariable('BERTH_ORG_ID'),
      projectId: options.projectId ?? readVariable('BERTH_PROJECT_ID'),
      endpoint: { url: this.url, credential, WebSocket: options.WebSocket },
    });
    this.sandboxes = new Sandboxes(this.#calls);
    this.agents = new Agents(this.#calls);
    this.projects = new Projects(this.#calls);
    this.keys = new ApiKeys(this.#calls);
    this.activity = new Activity(this.#calls);
    this.usage = new Usage(this.#calls);
    this.hosts = new Hosts(this.#calls);
  }

  /** Returns the caller; for an API key, its creator. */
  async me(options: CallOptions = {}): Promise<Identity> {
    return await this.raw.getMe(this.#calls.with(options));
  }

  /** Lists the orgs of the caller; for an API key, its org. */
  async orgs(options: CallOptions = {}): Promise<Org[]> {
    return (await this.raw.listMyOrgs(this.#calls.with(options))).orgs;
  }
}

/** Strips a trailing slash and `/v1`. */
function addressOf(url: string): string {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    throw new BerthError(`'${url}' is not an http or https URL: pass url to new Berth(), or set BERTH_URL`, {
      code: 'configuration',
    });
  }

  return url.replace(/\/+$/, '').replace(/\/v1$/, '');
}
