// The HTTP server. The composition root lists its entry points.
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { DEFAULT_BODY_BYTES } from '@berth/contract/route/limits.ts';
import { OPEN_PATHS } from '@berth/contract/access/open-paths.ts';
import { mcpEndpoint } from '@berth/contract/mcp/endpoint.ts';
import { ROUTES } from '@berth/contract/routes.ts';
import { LISTEN_BACKLOG } from '@berth/protocol/http/backlog.ts';
import { fastify, LogController, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { BytesInFlight } from '../call/bytes-in-flight.ts';
import { CodedError } from '../rules/coded-error.ts';
import { sendFailure } from './answers/errors.ts';
import { drainAfterLastResponses } from './answers/drain.ts';
import { logRequest, outcomeOf } from './answers/request-log.ts';
import { newRequestId } from './answers/request-id.ts';
import { securityHeaders } from './answers/security-headers.ts';
import { respondUnreadable } from './answers/unreadable.ts';
import { isWebSocketRequest } from './connections/websockets.ts';
import type { EntryPoint } from './entry-point.ts';
import { BODY_ARRIVES_MS, boundArrivals } from './requests/arrival.ts';
import { jsonParser, parseBodies } from './requests/body.ts';
import { allowedMethods } from './requests/paths.ts';

interface AppOptions {
  log: Logger;
  settings: { publicUrl: string; trustedProxies: readonly string[] };
  /** The first entry point that takes a request handles it. */
  entryPoints: readonly EntryPoint[];
  /** Time for a body to arrive after its head; {@link BODY_ARRIVES_MS} when absent. */
  bodyArrivesMs?: number | undefined;
}

const LONG_BODY_BYTES = 65_536;
const RECEIVE_HEAD_MS = 60_000;
/** Time after which TCP probes a silent caller. Its connection breaks 10 s later if it is gone. */
const PROBE_AFTER_MS = 20_000;
/** Idle time of a kept connection. */
const KEPT_CONNECTION_MS = 72_000;

export function newServer({ log, settings, entryPoints, bodyArrivesMs }: AppOptions): FastifyInstance {
  const headers = securityHeaders(settings.publicUrl);
  const app = fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: newRequestId,
    requestIdHeader: false,
    trustProxy: settings.trustedProxies.length === 0 ? false : [...settings.trustedProxies],
    bodyLimit: DEFAULT_BODY_BYTES,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    // Node limits a request's head to 16 KiB; a longer id is simply not found.
    routerOptions: { maxParamLength: 16_384 },
    serverFactory: (service) => newHttpServer(service, entryPoints, bodyArrivesMs ?? BODY_ARRIVES_MS),
    frameworkErrors: (error, request, reply) =>
      void sendFailure(error, request, reply.headers(headers).header('x-request-id', request.id)),
    clientErrorHandler: (error, socket) => respondUnreadable(error as NodeJS.ErrnoException, socket, headers, log),
  }) as unknown as FastifyInstance;
  return app;
}

function newHttpServer(service: RequestListener, entryPoints: readonly EntryPoint[], bodyArrivesMs: number): Server {
  const handled = (request: IncomingMessage, response: ServerResponse): boolean =>
    entryPoints.some((entryPoint) => entryPoint.handles?.(request, response) === true);
  const server = createServer(
    {
      // See `refusalOf`.
      requireHostHeader: false,
      shouldUpgradeCallback: isWebSocketRequest,
      headersTimeout: RECEIVE_HEAD_MS,
      // Uploads to previews have no time limit; bodies for the service are limited by
      // requests/arrival.ts.
      requestTimeout: 0,
      keepAliveTimeout: KEPT_CONNECTION_MS,
      keepAlive: true,
      keepAliveInitialDelay: PROBE_AFTER_MS,
    },
    (request, response) => {
      if (handled(request, response)) return;
      boundArrival(request, response);
      service(request, response);
    },
  );
  const boundArrival = boundArrivals(server, bodyArrivesMs);
  drainAfterLastResponses(server);
  server.on('upgrade', (request, stream, head) => {
    const socket = stream as Socket;
    if (!entryPoints.some((entryPoint) => entryPoint.handlesUpgrade?.(request, socket, head) === true))
      socket.destroy();
  });
  // An app may refuse a body before it is sent; the service always continues.
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    if (handled(request, response)) return;
    response.writeContinue();
    server.emit('request', request, response);
  });
  // An unknown expectation may be ignored (RFC 9110); by default Node refuses it.
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
    server.emit('request', request, response),
  );
  return server;
}

/**
 * Builds the server, which does not listen yet. `close()` refuses new requests and resolves when
 * the open ones have finished.
 */
export async function buildApp(options: AppOptions & { inFlight: BytesInFlight }): Promise<FastifyInstance> {
  const app = newServer(options);
  const headers = securityHeaders(options.settings.publicUrl);
  let closing = false;
  app.addHook('preClose', (done) => {
    closing = true;
    done();
  });
  app.addHook('onRequest', (request, reply, done) => {
    void reply.headers(headers).header('x-request-id', request.id);
    done(refusalOf(request, reply, closing) ?? (request.is404 ? notFound(request, reply) : undefined));
  });
  app.addHook('onSend', (request, reply, payload, done) => {
    // Otherwise Node would read the rest of a refused body, however long, for the next request.
    if (!request.raw.complete && hasLongBody(request.raw)) void reply.header('connection', 'close');
    done(null, payload);
  });
  app.addHook('onResponse', (request, reply, done) => {
    logRequest(request, reply, outcomeOf(reply.raw));
    done();
  });
  app.setErrorHandler((error, request, reply) => sendFailure(error, request, reply));
  app.removeAllContentTypeParsers();
  parseBodies(app, 'application/json', options.inFlight, jsonParser(app));
  for (const entryPoint of options.entryPoints) entryPoint.register?.(app);
  await app.ready();
  return app;
}

/** Starts to listen; resolves with the address. Port 0 selects a free port. */
export async function listen(app: FastifyInstance, address: string, port: number): Promise<AddressInfo> {
  await app.listen({ host: address, port, backlog: LISTEN_BACKLOG });
  return app.server.address() as AddressInfo;
}

/** Refusal that does not depend on the path; undefined for an acceptable request. */
function refusalOf({ raw }: FastifyRequest, reply: FastifyReply, closing: boolean): CodedError | undefined {
  // RFC 9112. Node's own check is off: its response lacks our headers.
  if (raw.headers.host === undefined && raw.httpVersion !== '1.0')
    return new CodedError('invalid_request', 'the header Host is missing');
  if (!closing) return undefined;
  void reply.header('connection', 'close');
  return new CodedError('shutting_down', 'this API replica is shutting down; retry', { retryAfterSeconds: 1 });
}

function hasLongBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > LONG_BODY_BYTES;
}

/** Before the body: nobody needs a token to send one to an unknown path. */
function notFound(request: FastifyRequest, reply: FastifyReply): CodedError {
  const allowed = allowedMethods([...ROUTES, mcpEndpoint, ...OPEN_PATHS], request.url);
  if (allowed.length === 0) return new CodedError('route_not_found', `there is no path ${pathOf(request)}`);
  void reply.header('allow', allowed.join(', '));
  const message = `${request.method} is not allowed on ${pathOf(request)}; allowed: ${allowed.join(', ')}`;
  return new CodedError('method_not_allowed', message);
}

function pathOf(request: FastifyRequest): string {
  return request.url.split('?', 1)[0]?.slice(0, 200) ?? '';
}
