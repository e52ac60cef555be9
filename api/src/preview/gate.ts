// Where requests to previews leave the service's own way: by their host, before a route, a hook or
// a parser of the service sees them.
//
//   Host -> link or cookie -> sandbox awake -> connection into it -> request and answer, or WebSocket
import { ServerResponse, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { ProxyServer } from 'http-proxy-3';
import { previewCookieName } from '../rules/previews/credentials.ts';
import type { PreviewPlace } from '../rules/previews/host.ts';
import type { ServiceContext } from '../services/context/context.ts';
import { OpenList } from '../services/previews/open-list.ts';
import { endBehindAnswer } from '../http/answers/last-answer.ts';
import { newRequestId } from '../http/answers/request-id.ts';
import { boundsOf, type PreviewBounds } from './bounds.ts';
import { CallerAddress } from './caller-address.ts';
import { Exchange } from './exchange.ts';
import { Machines } from './machines.ts';
import { sendRefusal } from './page.ts';
import type { PreviewParts } from './parts.ts';
import { BAD_HOST, FAULT, NOT_FOUND, STOPPING, type Refusal } from './refusals.ts';
import { Sites } from './site.ts';
import { Visit } from './visit.ts';
import { WebSocketPassage } from './web-socket.ts';

export interface PreviewGateOptions {
  context: ServiceContext;
  /** The contract's where absent. */
  bounds?: Partial<PreviewBounds> | undefined;
}

export class PreviewGate {
  readonly #parts: PreviewParts;
  readonly #sites: Sites;
  readonly #proxy = new ProxyServer();
  readonly #exchanges = new OpenList<Exchange>();
  readonly #passages = new Set<WebSocketPassage>();
  #closing = false;

  constructor({ context, bounds }: PreviewGateOptions) {
    const { previewUrl, trustedProxies } = context.settings;
    const secure = previewUrl.startsWith('https:');
    const all = boundsOf(bounds);
    this.#sites = new Sites(previewUrl);
    this.#parts = {
      context,
      bounds: all,
      machines: new Machines(context.hosts, all.connections),
      address: new CallerAddress(trustedProxies),
      cookieName: previewCookieName(previewUrl),
      reachedBy: secure ? { proto: 'https', port: '443' } : { proto: 'http', port: '80' },
    };
    // Exchanges and WebSockets are told of their own failures; what is left is a visitor who went
    // away.
    this.#proxy.on('error', (error) => context.log.debug({ err: error }, 'a visitor’s connection broke'));
  }

  /** Answers the request if it is for a preview, or for nobody. False: it is the service's. */
  takes(request: IncomingMessage, response: ServerResponse): boolean {
    const site = this.#sites.of(request);
    if (site === 'service') return false;
    if (typeof site === 'string') this.#refuse(request, response, site === 'malformed' ? NOT_FOUND : BAD_HOST);
    else if (this.#closing) this.#refuse(request, response, STOPPING);
    else void this.#pass(new Visit(this.#parts, request, response, site));
    return true;
  }

  /** The same for a request that asks to become a WebSocket. */
  takesUpgrade(request: IncomingMessage, socket: Socket, head: Buffer): boolean {
    const site = this.#sites.of(request);
    if (site === 'service') return false;
    if (typeof site === 'string' || this.#closing) {
      socket.on('error', (error) => this.#parts.context.log.debug({ err: error }, 'a visitor’s connection broke'));
      const response = new ServerResponse(request);
      response.shouldKeepAlive = false;
      response.assignSocket(socket);
      response.once('finish', () => endBehindAnswer(socket));
      this.#refuse(request, response, site === 'refused' ? BAD_HOST : site === 'malformed' ? NOT_FOUND : STOPPING);
    } else {
      void this.#passUpgrade(request, socket, head, site);
    }
    return true;
  }

  /** Lets nobody in any more, and ends what would not end by itself. */
  stop(): void {
    this.#closing = true;
    for (const passage of this.#passages) passage.cut();
    for (const exchange of this.#exchanges.items()) if (exchange.streams) exchange.cut();
  }

  /** Closes what is left, the connections into sandboxes too. */
  close(): void {
    this.#parts.machines.close();
  }

  async #pass(visit: Visit): Promise<void> {
    try {
      const admitted = await visit.letIn();
      if (admitted === undefined || visit.gone) return;
      const exchange = new Exchange(this.#parts, this.#proxy, visit, admitted);
      visit.response.once('close', this.#exchanges.add(exchange).close);
      exchange.start();
    } catch (error) {
      this.#fault(visit, error);
    }
  }

  async #passUpgrade(request: IncomingMessage, socket: Socket, head: Buffer, place: PreviewPlace): Promise<void> {
    const passage = new WebSocketPassage(this.#parts, this.#proxy, request, socket, head, place);
    this.#passages.add(passage);
    socket.once('close', () => this.#passages.delete(passage));
    try {
      await passage.start();
    } catch (error) {
      this.#fault(passage.visit, error);
    }
  }

  #fault(visit: Visit, error: unknown): void {
    if (visit.gone) return;
    this.#parts.context.log.error(
      { err: error, reqId: visit.id },
      'a request to a preview failed by a fault of the service',
    );
    visit.refuse(FAULT);
  }

  #refuse(request: IncomingMessage, response: ServerResponse, refusal: Refusal): void {
    const reqId = newRequestId();
    const { method } = request;
    response.once('close', () => {
      this.#parts.context.log.info(
        { reqId, method, status: response.statusCode, code: refusal.code },
        'a request to no preview',
      );
    });
    sendRefusal(request, response, refusal, reqId);
  }
}
