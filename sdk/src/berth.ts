// The client: where the service is, with what it is called, and the parts of it.
import { Activity } from './activity.ts';
import { ApiKeys } from './api-keys.ts';
import { Calls } from './calls.ts';
import { readVariable } from './transport/environment.ts';
import { BerthError } from './transport/errors.ts';
import { RawClient, type Identity, type Org } from './generated/raw/index.ts';
import { createClient } from './generated/raw/client/index.ts';
import { Projects } from './projects.ts';
import { Sandboxes } from './sandboxes.ts';
import type { WebSocketConstructor } from './streams/web-socket.ts';
import { Usage } from './usage.ts';
import { Transport, type CallOptions, type Credential } from './transport/transport.ts';

export type { Identity, Org };

/** What a client is made of; all of it has a default. */
export interface BerthOptions {
  /**
   * An API key or session token, or a function that gives one for each request. By default
   * `BERTH_API_KEY`.
   */
  apiKey?: Credential;
  /**
   * Where the service is. By default `BERTH_URL`, or `http://127.0.0.1:4800`, where a new
   * installation listens.
   */
  url?: string;
  /** By default `BERTH_ORG_ID`, or the one org of the key. */
  orgId?: string;
  /**
   * The project that sandboxes are made in when their spec names none. By default
   * `BERTH_PROJECT_ID`.
   */
  projectId?: string;
  /**
   * Longest a call may take, in milliseconds, unless it says otherwise; by default 30000. Commands
   * and transitions have longer times of their own.
   */
  timeoutMs?: number;
  /**
   * How often a GET or HEAD is sent again after a failure that passes; by default 3. Writes are
   * never sent again.
   */
  maxRetries?: number;
  /** Instead of the global one. */
  fetch?: typeof globalThis.fetch;
  /**
   * For streams, instead of the global one. Node 20 has none, and the global one of any runtime has
   * no back-pressure: on Node give it that of the package `ws`.
   */
  WebSocket?: WebSocketConstructor;
}

const DEFAULT_URL = 'http://127.0.0.1:4800';
const TIMEOUT_MS = 30_000;
const MAX_RETRIES = 3;

/** A client of one service. */
export class Berth {
  readonly sandboxes: Sandboxes;
  readonly projects: Projects;
  readonly keys: ApiKeys;
  readonly activity: Activity;
  readonly usage: Usage;
  /**
   * Every route of the API as a function, with its types: for what has no function of its own here.
   * Fails as the rest does, with {@link BerthError}.
   */
  readonly raw: RawClient;
  /** Where the service is. */
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
    // Looked up for each call, so that one which is replaced later, as in a test, is used.
    const fetch: typeof globalThis.fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    const { timeoutMs = TIMEOUT_MS, maxRetries = MAX_RETRIES } = options;
    const transport = new Transport({ credential, fetch, timeoutMs, maxRetries });
    this.raw = new RawClient({
      client: createClient({ baseUrl: this.url, fetch: transport.fetchFor(), throwOnError: true }),
    });
    this.#calls = new Calls({
      raw: this.raw,
      transport,
      orgId: options.orgId ?? readVariable('BERTH_ORG_ID'),
      projectId: options.projectId ?? readVariable('BERTH_PROJECT_ID'),
      endpoint: { url: this.url, credential, WebSocket: options.WebSocket },
    });
    this.sandboxes = new Sandboxes(this.#calls);
    this.projects = new Projects(this.#calls);
    this.keys = new ApiKeys(this.#calls);
    this.activity = new Activity(this.#calls);
    this.usage = new Usage(this.#calls);
  }

  /** Who calls; with an API key, who made it. */
  async me(options: CallOptions = {}): Promise<Identity> {
    return await this.raw.getMe(this.#calls.with(options));
  }

  /** The orgs that the caller belongs to; with an API key, the key's. */
  async orgs(options: CallOptions = {}): Promise<Org[]> {
    return (await this.raw.listMyOrgs(this.#calls.with(options))).orgs;
  }
}

/** Without a slash at its end and without `/v1`, which some put there. */
function addressOf(url: string): string {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    throw new BerthError(`'${url}' is not an http or https URL: pass url to new Berth(), or set BERTH_URL`, {
      code: 'configuration',
    });
  }

  return url.replace(/\/+$/, '').replace(/\/v1$/, '');
}
