// Entry point of requests to previews. Takes them out of the server by their Host header, before
// any route, hook or parser of the service sees them.
//
//   Host -> link or cookie -> sandbox awake -> connection to the app -> response or WebSocket
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { previewCookieName } from '../rules/previews/credentials.ts';
import type { PreviewPlace } from '../rules/previews/host.ts';
import type { ServiceContext } from '../services/context/context.ts';
import type { PreviewAccessCache } from '../services/previews/access-cache.ts';
import type { EntryPoint } from '../http/entry-point.ts';
import { OpenList } from '../services/previews/open-list.ts';
import { newRequestId } from '../http/answers/request-id.ts';
import { boundsOf, type PreviewBounds } from './bounds.ts';
import { CallerAddress } from './caller-address.ts';
import { ConnectionPools } from './connection-pools.ts';
import { Exchange } from './exchange.ts';
import { isTrustworthy } from './isolation.ts';
import { sendRefusal } from './page.ts';
import { BAD_HOST, FAULT, NOT_FOUND, STOPPING, type Refusal } from './refusals.ts';
import { PreviewRequest } from './request.ts';
import type { KeyGuard, PreviewRuntime } from './runtime.ts';
import { SiteResolver, type Site } from './site.ts';
import { Visitors } from './visitors.ts';
import { responseOver, WebSocketProxy } from './web-socket.ts';

interface PreviewGateOptions {
  context: ServiceContext;
  accessCache: PreviewAccessCache;
  failures: KeyGuard;
  /** Overrides of the contract's limits. */
  bounds?: Partial<PreviewBounds> | undefined;
}

export class PreviewGate implements EntryPoint {
  readonly #runtime: PreviewRuntime;
  readonly #sites: SiteResolver;
  readonly #exchanges = new OpenList<Exchange>();
  readonly #webSockets = new Set<WebSocketProxy>();
  #stopping = false;

  constructor({ context, accessCache, failures, bounds: changed }: PreviewGateOptions) {
    const { previewUrl, previewCookies, trustedProxies, visitors } = context.settings;
    const bounds = boundsOf(changed);
    this.#sites = new SiteResolver(previewUrl);
    this.#runtime = {
      context,
      accessCache,
      bounds,
      pools: new ConnectionPools(context.hosts, bounds.connections),
      address: new CallerAddress(trustedProxies),
      cookies: { name: previewCookieName(previewUrl), proven: previewCookies === 'proven' },
      visitors: new Visitors(visitors),
      proto: previewUrl.startsWith('https:') ? 'https' : 'http',
      isTrustworthy: isTrustworthy(previewUrl),
      failures,
    };
  }

  register(app: FastifyInstance): void {
    app.addHook('preClose', (done) => {
      this.#stop();
      done();
    });
    app.addHook('onClose', () => this.#runtime.pools.close());
  }

  /** Returns false, with the request untouched, when it is for the service. */
  handles(request: IncomingMessage, response: ServerResponse): boolean {
    const site = this.#sites.resolve(request);
    if (site === 'service') return false;
    const place = this.#placeOf(site);
    if ('sandboxId' in place) void this.#proxy(new PreviewRequest(this.#runtime, request, response, place));
    else this.#refuse(request, response, place);
    return true;
  }

  /** Like {@link handles}, for a WebSocket handshake. */
  handlesUpgrade(request: IncomingMessage, socket: Socket, head: Buffer): boolean {
    const site = this.#sites.resolve(request);
    if (site === 'service') return false;
    const place = this.#placeOf(site);
    if ('sandboxId' in place) void this.#proxyWebSocket(request, socket, head, place);
    else this.#refuse(request, responseOver(socket, request, this.#runtime), place);
    return true;
  }

  /** Refuses new requests, and ends WebSockets and streams, which would not end by themselves. */
  #stop(): void {
    this.#stopping = true;
    for (const webSocket of this.#webSockets) webSocket.cut();
    for (const exchange of this.#exchanges.items()) if (exchange.isStream) exchange.cut();
  }

  #placeOf(site: Exclude<Site, 'service'>): PreviewPlace | Refusal {
    if (site === 'ambiguous') return BAD_HOST;
    if (site === 'malformed') return NOT_FOUND;
    return this.#stopping ? STOPPING : site;
  }

  async #proxy(request: PreviewRequest): Promise<void> {
    try {
      const admitted = await request.admit();
      if (admitted === undefined || request.closed) return;
      const exchange = new Exchange(this.#runtime, request, admitted);
      request.response.once('close', this.#exchanges.add(exchange).close);
      exchange.start();
    } catch (error) {
      this.#fault(request, error);
    }
  }

  async #proxyWebSocket(request: IncomingMessage, socket: Socket, head: Buffer, place: PreviewPlace): Promise<void> {
    const webSocket = new WebSocketProxy(this.#runtime, request, socket, head, place);
    this.#webSockets.add(webSocket);
    socket.once('close', () => {
      this.#webSockets.delete(webSocket);
      webSocket.request.leave();
    });
    try {
      await webSocket.start();
    } catch (error) {
      this.#fault(webSocket.request, error);
    }
  }

  #fault(request: PreviewRequest, error: unknown): void {
    if (request.closed) return;
    this.#runtime.context.log.error({ err: error, reqId: request.id }, 'internal error in a preview request');
    request.refuse(FAULT);
  }

  #refuse(request: IncomingMessage, response: ServerResponse, refusal: Refusal): void {
    const reqId = newRequestId();
    const { method } = request;
    response.once('close', () => {
      this.#runtime.context.log.info(
        { reqId, method, status: response.statusCode, code: refusal.code },
        'request refused before reaching a preview',
      );
    });
    sendRefusal(request, response, refusal, reqId);
  }
}
