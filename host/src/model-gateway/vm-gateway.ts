// The gateway of one VM: its listener, its access and its limits. The listener identifies the VM;
// credentials in a request mean nothing.
import { once, setMaxListeners } from 'node:events';
import { Agent, createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { RateLimit } from '@berth/os/rate-limit.ts';
import { MODEL_PROVIDERS, type ModelAccess, type ModelProvider } from '@berth/protocol/calls/model-access.ts';
import type { SharedCapacity } from '@berth/protocol/shared-capacity.ts';
import { exchange, tooLarge, type ModelAgents, type ModelTarget } from './exchange.ts';
import type { ModelLimits } from './limits.ts';
import { Refusal, sendRefusal } from './refusal.ts';
import { providerOf, requestOf, type ModelRequest } from './routes.ts';

/** Parts that the VMs of a host share. */
export interface SharedLimits {
  limits: ModelLimits;
  /** Requests in flight by org. */
  places: SharedCapacity;
  rateOf: (orgId: string) => RateLimit;
  /** Certificate authorities of the endpoints. */
  ca: string[];
}

interface InFlight {
  target: ModelTarget | null;
  provider: ModelProvider;
  abort: AbortController;
}

export class VmGateway {
  readonly #shared: SharedLimits;
  readonly #server: Server;
  readonly #agents: ModelAgents;
  readonly #rate: RateLimit;
  readonly #inFlight = new Set<InFlight>();
  /** Null: not known yet. */
  #access: ModelAccess | null = null;
  #known = Promise.withResolvers<void>();

  constructor(shared: SharedLimits) {
    this.#shared = shared;
    const { limits } = shared;
    this.#rate = new RateLimit(limits.vmPerMinute / 60, limits.vmBurst);
    const idle = {
      ...{ keepAlive: true, timeout: limits.providerIdleMs, maxFreeSockets: 4, highWaterMark: limits.bufferBytes },
    };
    // Never shared with another VM: a fault of a provider must not mix the responses of tenants.
    this.#agents = { http: new Agent(idle), https: new HttpsAgent({ ...idle, ca: shared.ca }) };
    this.#server = createServer(
      {
        maxHeaderSize: limits.headBytes,
        headersTimeout: Math.min(10_000, limits.requestMs),
        requestTimeout: limits.requestMs,
        keepAliveTimeout: limits.idleMs,
        connectionsCheckingInterval: Math.min(5_000, limits.requestMs),
        noDelay: true,
        highWaterMark: limits.bufferBytes,
      },
      (request, response) => void this.#serve(request, response),
    );
    this.#server.maxConnections = limits.connectionsPerVm;
  }

  /** Rejects if it cannot listen there. */
  async listen({ address, port }: { address: string; port: number }): Promise<void> {
    this.#server.listen({ host: address, port });
    await once(this.#server, 'listening');
    this.#server.on('error', () => undefined);
  }

  /** Ends the requests that use another key, and lets waiting ones continue. Null: forget it. */
  setAccess(access: ModelAccess | null): void {
    if (access === null && this.#access !== null) this.#known = Promise.withResolvers();
    this.#access = access;
    if (access !== null) this.#known.resolve();
    for (const { target, provider, abort } of this.#inFlight) {
      const now = this.#targetOf(provider);
      if (target !== null && (now?.key !== target.key || now.endpoint !== target.endpoint)) abort.abort();
    }
  }

  /** Ends all requests. */
  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
    for (const { abort } of this.#inFlight) abort.abort();
    this.#agents.http.destroy();
    this.#agents.https.destroy();
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { url = '', method = '' } = incoming;
    const provider = providerOf(url);
    outgoing.on('error', () => undefined);
    incoming.on('error', () => undefined);
    try {
      // Refused requests count too: they cost the other VMs time.
      const { vmPerMinute } = this.#shared.limits;
      if (!this.#rate.take())
        throw tooMany(`the sandbox sends more than ${vmPerMinute} requests a minute`, { connection: 'close' });
      if (provider === null) throw new Refusal('unknownPath', 'the paths start with /openai or /anthropic');
      // Agents probe the connection with it.
      if (method === 'HEAD') return void outgoing.end();
      const asked = requestOf(provider, method, url);
      if (asked === null) throw new Refusal('unknownPath', 'this path is not open to sandboxes');
      if (Array.isArray(asked))
        throw new Refusal('wrongMethod', 'this method is not open to sandboxes', { allow: asked.join(', ') });
      const { requestBytes } = this.#shared.limits;
      if (Number(incoming.headers['content-length'] ?? 0) > requestBytes) throw tooLarge(requestBytes);
      await this.#admitted(incoming, outgoing, provider, asked);
    } catch (error) {
      sendRefusal(outgoing, provider, error instanceof Refusal ? error : new Refusal('badResponse', 'internal error'));
    }
  }

  async #admitted(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    provider: ModelProvider,
    asked: ModelRequest,
  ): Promise<void> {
    const { limits } = this.#shared;
    if (this.#inFlight.size >= limits.perVm)
      throw tooMany(`the sandbox has ${limits.perVm} requests to models in flight`);

    const abort = new AbortController();
    setMaxListeners(0, abort.signal);
    const mine: InFlight = { target: null, provider, abort };
    this.#inFlight.add(mine);
    const onClose = (): void => abort.abort();
    outgoing.once('close', onClose);
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      abort.abort();
    }, limits.exchangeMs);
    let release = (): void => undefined;
    try {
      const { orgId } = await this.#accessOf(abort.signal);
      release = this.#placeOf(orgId);
      mine.target = this.#targetOf(provider);
      const { target } = mine;
      if (target === null) throw new Refusal('noAccess', 'the project has no model key for this agent');
      await exchange(incoming, outgoing, {
        ...{ provider, asked, target, limits },
        ...{ agents: this.#agents, signal: abort.signal },
      });
    } catch (error) {
      if (late) throw new Refusal('late', `no complete response within ${limits.exchangeMs / 1_000} s`);
      if (abort.signal.aborted) throw new Refusal('unavailable', "the project's model key was changed. Send it again");
      throw error;
    } finally {
      clearTimeout(timer);
      outgoing.off('close', onClose);
      this.#inFlight.delete(mine);
      release();
    }
  }

  /** The access, as soon as the host daemon knows it. */
  async #accessOf(signal: AbortSignal): Promise<ModelAccess> {
    const { accessMs } = this.#shared.limits;
    const gone = Promise.withResolvers<never>();
    gone.promise.catch(() => undefined);
    const missing = new Refusal('unavailable', 'the host does not know the key of the project yet. Send it again', {
      'retry-after': '1',
    });
    const timer = setTimeout(() => gone.reject(missing), accessMs);
    const onAbort = (): void => gone.reject(missing);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      for (;;) {
        if (this.#access !== null) return this.#access;
        await Promise.race([this.#known.promise, gone.promise]);
      }
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
    }
  }

  #placeOf(orgId: string): () => void {
    const { places, rateOf, limits } = this.#shared;
    if (!rateOf(orgId).take())
      throw tooMany(`the org sends more than ${limits.orgPerMinute} requests a minute on this host`);
    const release = places.take(orgId);
    if (release === 'full')
      throw new Refusal('unavailable', 'the host has too many requests to models in flight', { 'retry-after': '1' });
    if (release === 'share') throw tooMany("the org has its share of this host's requests to models in flight");
    return release;
  }

  #targetOf(provider: ModelProvider): ModelTarget | null {
    for (const agent of ['agent_one', 'agent_two'] as const)
      if (MODEL_PROVIDERS[agent] === provider) return this.#access?.agents[agent] ?? null;
    return null;
  }
}

function tooMany(message: string, headers: Readonly<Record<string, string>> = {}): Refusal {
  return new Refusal('tooMany', message, { 'retry-after': '1', ...headers });
}
