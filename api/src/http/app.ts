// The HTTP server: every request's way from its route value to its answer. Routes are the
// contract's; nothing is registered beside them. What comes to a preview's host goes another way
// (src/preview), before any of it.
//
//   route found -> authenticate -> count -> access -> body read and parsed -> route's service -> answer
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ErrorCode } from '@berth/contract/route/errors.ts';
import { DEFAULT_BODY_BYTES } from '@berth/contract/route/limits.ts';
import { OPEN_PATHS } from '@berth/contract/access/open-paths.ts';
import type { Route } from '@berth/contract/route/route.ts';
import { ROUTES } from '@berth/contract/routes.ts';
import { fastify, LogController, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { CodedError } from '../rules/coded-error.ts';
import { pages } from '../pages/pages.ts';
import type { PreviewBounds } from '../preview/bounds.ts';
import { PreviewGate } from '../preview/gate.ts';
import { BOUND_ROUTES } from '../routes/bound-routes.ts';
import type { AnyCall, BoundAnswer, BoundRoute } from '../call/bind.ts';
import { registerReference } from '../reference/reference.ts';
import { authorize, namedSandboxId } from '../services/access/access.ts';
import {
  authenticate,
  readToken,
  type Actor,
  type BearerToken,
  type NamedSandbox,
} from '../services/access/authentication.ts';
import type { ClientSignIn } from '../services/people/client-sign-in-port.ts';
import type { ServiceContext } from '../services/context/context.ts';
import { PreviewAccessCache } from '../services/previews/access-cache.ts';
import type { LocatedSandboxRow } from '../services/sandboxes/sandboxes.ts';
import { registerAuthEndpoints } from './auth-endpoints.ts';
import { BODY_ARRIVES_MS, boundArrival } from './requests/arrival.ts';
import { readJsonBodies } from './requests/body.ts';
import { deprecationHeaders } from './answers/deprecation.ts';
import { abortedWhenGone } from './answers/caller-gone.ts';
import { sendFailure } from './answers/errors.ts';
import { readIdempotencyKey } from './requests/idempotency-key.ts';
import { endBehindLastAnswers } from './answers/last-answer.ts';
import { answerKeepingAlive, type KeepAliveTimes } from './answers/keep-alive.ts';
import { allowedMethods, toFastifyPath } from './requests/paths.ts';
import { registerPaymentEvents } from './payment-events.ts';
import { prefersAsync } from './requests/prefer.ts';
import { FailedAuthentications, RequestLimit } from '../call/rate-limit.ts';
import { newRequestId } from './answers/request-id.ts';
import { logRequest, outcomeOf } from './requests/request-log.ts';
import { securityHeaders } from './answers/security-headers.ts';
import { answerUnreadable } from './answers/unreadable.ts';
import { parseWith } from '../call/validation.ts';
import { websocketAuthorization } from './connections/websocket-bearer.ts';
import { answerWebSocket } from './connections/websocket-route.ts';
import { asksForWebSocket, WebSockets } from './connections/websockets.ts';

declare module 'fastify' {
  interface FastifyRequest {
    actor: Actor | undefined;
    /** What the actor was known by. */
    bearer: BearerToken | undefined;
    /** The org that access was decided in. */
    orgId: string | undefined;
    /** The sandbox that the path names, as it was when access was decided. */
    sandbox: LocatedSandboxRow | undefined;
    errorCode: ErrorCode | undefined;
  }
}

export interface AppOptions {
  context: ServiceContext;
  signIn: ClientSignIn;
  /**
   * Called with every successful answer as the caller will parse it; tests hold it against the
   * route's schema.
   */
  onAnswer?: (route: Route, answer: unknown) => void;
  /** When a long exec gets its headers and spaces; the contract's times when absent. */
  keepAlive?: KeepAliveTimes;
  /** How often an open WebSocket is asked whether it is there; the contract's time when absent. */
  pingEveryMs?: number;
  /** Within how long of its head a body arrives; {@link BODY_ARRIVES_MS} when absent. */
  bodyArrivesMs?: number;
  /** Of previews; the contract's where absent. */
  previewBounds?: Partial<PreviewBounds>;
  /**
   * Milliseconds of the clock that requests are counted by; it never goes back. Tests have one of
   * their own.
   */
  now?: () => number;
}

const RECEIVE_HEAD_MS = 60_000;
/** How long a connection is kept for its next request. */
const KEPT_CONNECTION_MS = 72_000;

/** A server without any route, hook or parser of ours. */
export function newServer(
  context: ServiceContext,
  previews = new PreviewGate({ context, accessCache: new PreviewAccessCache(context) }),
  bodyArrivesMs = BODY_ARRIVES_MS,
): FastifyInstance {
  const { log, settings } = context;
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
    // Node bounds the whole head of a request by 16 KiB; an id of any length is simply not found.
    routerOptions: { maxParamLength: 16_384 },
    serverFactory: (service) => newHttpServer(service, previews, bodyArrivesMs),
    frameworkErrors: (error, request, reply) =>
      void sendFailure(error, request, reply.headers(headers).header('x-request-id', request.id)),
    clientErrorHandler: (error, socket) => answerUnreadable(error as NodeJS.ErrnoException, socket, headers, log),
  }) as unknown as FastifyInstance;
  return app;
}

function newHttpServer(service: RequestListener, previews: PreviewGate, bodyArrivesMs: number): Server {
  const server = createServer(
    {
      // See `refusalOf`.
      requireHostHeader: false,
      shouldUpgradeCallback: asksForWebSocket,
      headersTimeout: RECEIVE_HEAD_MS,
      // An upload to a preview takes as long as it takes; what the service itself is sent is
      // bounded below.
      requestTimeout: 0,
      keepAliveTimeout: KEPT_CONNECTION_MS,
    },
    (request, response) => {
      if (previews.takes(request, response)) return;
      boundArrival(server, request, response, bodyArrivesMs);
      service(request, response);
    },
  );
  endBehindLastAnswers(server);
  // An app may refuse a body before it is sent; of the service itself no caller is asked to wait.
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    if (previews.takes(request, response)) return;
    response.writeContinue();
    server.emit('request', request, response);
  });
  // An expectation that is not known may be ignored (RFC 9110); Node would answer it by itself.
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
    server.emit('request', request, response),
  );
  return server;
}

/**
 * Builds the server; it does not listen yet. `close()` refuses new requests and ends when the open
 * ones have.
 */
export async function buildApp(options: AppOptions): Promise<FastifyInstance> {
  const { settings } = options.context;
  const previews = new PreviewGate({
    context: options.context,
    accessCache: new PreviewAccessCache(options.context),
    bounds: options.previewBounds,
  });
  const app = newServer(options.context, previews, options.bodyArrivesMs);
  const headers = securityHeaders(settings.publicUrl);
  const counting = {
    perMinute: settings.requestsPerMinute,
    ...(options.now === undefined ? {} : { now: options.now }),
  };
  const limits: Limits = { requests: new RequestLimit(counting), failures: new FailedAuthentications(counting) };

  let closing = false;
  app.addHook('preClose', () => {
    closing = true;
    previews.stop();
  });
  app.addHook('onClose', () => previews.close());
  app.decorateRequest('actor', undefined);
  app.decorateRequest('bearer', undefined);
  app.decorateRequest('orgId', undefined);
  app.decorateRequest('sandbox', undefined);
  app.decorateRequest('errorCode', undefined);
  app.addHook('onRequest', (request, reply, done) => {
    void reply.headers(headers).header('x-request-id', request.id);
    done(refusalOf(request, reply, closing));
  });
  app.addHook('onResponse', (request, reply, done) => {
    logRequest(request, reply, outcomeOf(reply.raw));
    done();
  });
  app.setErrorHandler((error, request, reply) => sendFailure(error, request, reply));
  app.setNotFoundHandler((request, reply) => {
    const allowed = allowedMethods([...ROUTES, ...OPEN_PATHS], request.url);
    if (allowed.length === 0)
      return sendFailure(new CodedError('route_not_found', `there is no path ${pathOf(request)}`), request, reply);
    void reply.header('allow', allowed.join(', '));
    const message = `${request.method} is not possible on ${pathOf(request)}; possible: ${allowed.join(', ')}`;
    return sendFailure(new CodedError('method_not_allowed', message), request, reply);
  });
  readJsonBodies(app);
  registerAuthEndpoints(app, options);
  registerReference(app, settings.publicUrl);
  registerPaymentEvents(app, options.context);
  void app.register(pages, options);
  const sockets = new WebSockets(app, previews);
  for (const bound of BOUND_ROUTES) register(app, bound, options, limits, sockets);
  await app.ready();
  return app;
}

/** Starts to listen; resolves with the address. Port 0 takes a free one. */
export async function listen(app: FastifyInstance, address: string, port: number): Promise<AddressInfo> {
  await app.listen({ host: address, port });
  return app.server.address() as AddressInfo;
}

interface Limits {
  requests: RequestLimit;
  failures: FailedAuthentications;
}

function register(
  app: FastifyInstance,
  bound: BoundRoute,
  options: AppOptions,
  limits: Limits,
  sockets: WebSockets,
): void {
  const { route } = bound;
  const { context } = options;
  app.route({
    method: route.method,
    url: toFastifyPath(route.path),
    bodyLimit: route.bodyBytes ?? DEFAULT_BODY_BYTES,
    onRequest: async (request, reply) => {
      const params = request.params as Record<string, string>;
      void reply.headers(deprecationHeaders(route, params));
      if (route.auth.length === 0) return;
      const authorization =
        route.websocket === true ? websocketAuthorization(request.raw) : request.headers.authorization;
      const { actor, bearer, named } = await identify(
        context,
        limits.failures,
        request,
        authorization,
        namedSandboxId(params),
      );
      request.actor = actor;
      request.bearer = bearer;
      const counted = limits.requests.count(actor);
      void reply.headers(counted.headers);
      if (counted.refusal !== undefined) throw counted.refusal;
      request.orgId = await authorize(context, actor, route, params, named);
      request.sandbox = named.sandbox;
    },
    handler: async (request, reply) => {
      if ('connect' in bound) {
        await answerWebSocket(options, sockets, bound, request, reply);
        options.onAnswer?.(route, undefined);
        return reply;
      }
      const call = readCall(bound, request, reply);
      const answering = bound.answer(context, call);
      const answer = bound.keepsAlive
        ? await answerKeepingAlive(answering, route.response.status, request, reply, options.keepAlive)
        : await answering;
      if (reply.sent) return reply;
      options.onAnswer?.(route, JSON.parse(JSON.stringify(answer)));
      return reply.code(route.response.status).send(answer);
    },
  });
}

/** Who calls, unless the address has failed to say so too often. */
async function identify(
  context: ServiceContext,
  failures: FailedAuthentications,
  request: FastifyRequest,
  authorization: string | undefined,
  sandboxId: string | null,
): Promise<{ actor: Actor; bearer: BearerToken; named: NamedSandbox }> {
  let bearer: BearerToken;
  try {
    bearer = readToken(authorization);
  } catch (error) {
    failures.count(request.ip);
    throw error;
  }
  const found = await failures.guard(request.ip, bearer, () =>
    authenticate(context, { bearer, sandboxId, requestId: request.id }),
  );
  return { ...found, bearer };
}

/** Why a request is refused whatever its path; undefined when it is not. */
function refusalOf({ raw }: FastifyRequest, reply: FastifyReply, closing: boolean): CodedError | undefined {
  // RFC 9112. Node is told not to look at it, as it would answer without our headers.
  if (raw.headers.host === undefined && raw.httpVersion !== '1.0')
    return new CodedError('invalid_request', 'the header Host is missing');
  if (!closing) return undefined;
  void reply.header('connection', 'close');
  return new CodedError('shutting_down', 'this instance is stopping; try again', { retryAfterSeconds: 1 });
}

/** What the caller asked, parsed by the route's schemas. */
function readCall(bound: BoundAnswer, request: FastifyRequest, reply: FastifyReply): AnyCall {
  const { request: schemas } = bound.route;
  const respondAsync = bound.route.waits === true && prefersAsync(request.headers.prefer);
  if (respondAsync) void reply.header('preference-applied', 'respond-async');
  // Made when it is asked for: a plain read has no use for it.
  let signal: AbortSignal | undefined;
  return {
    params: schemas.params === undefined ? undefined : parseWith(schemas.params, request.params, 'path'),
    query: schemas.query === undefined ? undefined : parseWith(schemas.query, request.query, 'query'),
    body: schemas.body === undefined ? undefined : parseWith(schemas.body, request.body, 'body'),
    actor: request.actor,
    sandbox: request.sandbox,
    respondAsync,
    idempotencyKey: bound.route.idempotent === true ? readIdempotencyKey(request.raw) : undefined,
    noteReplay: () => void reply.header('idempotent-replayed', 'true'),
    get signal() {
      signal ??= abortedWhenGone(reply);
      return signal;
    },
  };
}

function pathOf(request: FastifyRequest): string {
  return request.url.split('?', 1)[0]?.slice(0, 200) ?? '';
}
