// The HTTP server: every request's way from its route value to its answer. Routes are the contract's; nothing is registered beside them.
//
//   route found -> authenticate -> access -> body read and parsed -> route's service -> answer
import { randomUUID } from 'node:crypto';
import type { AddressInfo, Socket } from 'node:net';
import type { ErrorCode } from '@berth/contract/errors.ts';
import { DEFAULT_BODY_BYTES } from '@berth/contract/limits.ts';
import type { Route } from '@berth/contract/route.ts';
import { fastify, LogController, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { CodedError } from '../rules/coded-error.ts';
import { BOUND_ROUTES } from '../routes/bound-routes.ts';
import type { AnyCall, BoundRoute } from '../routes/bind.ts';
import { authorize, namedSandboxId } from '../services/access.ts';
import { authenticate, readToken, type Actor } from '../services/authentication.ts';
import type { ClientSignIn } from '../services/client-sign-in-port.ts';
import type { ServiceContext } from '../services/context.ts';
import type { LocatedSandboxRow } from '../services/sandboxes.ts';
import { registerAuthEndpoints } from './auth-endpoints.ts';
import { readJsonBodies } from './body.ts';
import { deprecationHeaders } from './deprecation.ts';
import { CallerGone, envelope, sendFailure } from './errors.ts';
import { readIdempotencyKey } from './idempotency-key.ts';
import { answerKeepingAlive, type KeepAliveTimes } from './keep-alive.ts';
import { allowedMethods, toFastifyPath } from './paths.ts';
import { prefersAsync } from './prefer.ts';
import { parseWith } from './validation.ts';

declare module 'fastify' {
  interface FastifyRequest {
    actor: Actor | undefined;
    /** The sandbox that the path names, as it was when access was decided. */
    sandbox: LocatedSandboxRow | undefined;
    errorCode: ErrorCode | undefined;
  }
}

export interface AppOptions {
  context: ServiceContext;
  signIn: ClientSignIn;
  /** Called with every successful answer as the caller will parse it; tests hold it against the route's schema. */
  onAnswer?: (route: Route, answer: unknown) => void;
  /** When a long exec gets its headers and spaces; the contract's times when absent. */
  keepAlive?: KeepAliveTimes;
}

const RECEIVE_REQUEST_MS = 60_000;

/** A server without any route, hook or parser of ours. */
export function newServer(context: Pick<ServiceContext, 'log'>): FastifyInstance {
  return fastify({
    loggerInstance: context.log,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => `req_${randomUUID().replaceAll('-', '')}`,
    bodyLimit: DEFAULT_BODY_BYTES,
    requestTimeout: RECEIVE_REQUEST_MS,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    // Node bounds the whole head of a request by 16 KiB; an id of any length is simply not found.
    routerOptions: { maxParamLength: 16_384 },
    frameworkErrors: (error, request, reply) => void sendFailure(error, request, stamp(request, reply)),
    clientErrorHandler: (error, socket) => answerUnreadable(error as NodeJS.ErrnoException, socket),
  }) as unknown as FastifyInstance;
}

/** Builds the server; it does not listen yet. `close()` refuses new requests and ends when the open ones have. */
export async function buildApp(options: AppOptions): Promise<FastifyInstance> {
  const app = newServer(options.context);

  let closing = false;
  app.addHook('preClose', () => {
    closing = true;
  });
  app.decorateRequest('actor', undefined);
  app.decorateRequest('sandbox', undefined);
  app.decorateRequest('errorCode', undefined);
  app.addHook('onRequest', async (request, reply) => {
    stamp(request, reply);
    if (!closing) return;
    void reply.header('connection', 'close');
    throw new CodedError('shutting_down', 'this instance is stopping; try again', { retryAfterSeconds: 1 });
  });
  app.addHook('onResponse', async (request, reply) => {
    request.log.info(
      {
        method: request.method,
        path: request.routeOptions.url ?? 'unknown',
        status: reply.raw.statusCode,
        code: request.errorCode,
        caller: request.actor?.id,
        ...(reply.raw.writableFinished ? {} : { brokenOff: true }),
        ms: Math.round(reply.elapsedTime * 10) / 10,
      },
      'request',
    );
  });
  app.setErrorHandler((error, request, reply) => sendFailure(error, request, reply));
  app.setNotFoundHandler((request, reply) => {
    const allowed = allowedMethods(BOUND_ROUTES, request.url);
    if (allowed.length === 0) return sendFailure(new CodedError('route_not_found', `there is no path ${pathOf(request)}`), request, reply);
    void reply.header('allow', allowed.join(', '));
    const message = `${request.method} is not possible on ${pathOf(request)}; possible: ${allowed.join(', ')}`;
    return sendFailure(new CodedError('method_not_allowed', message), request, reply);
  });
  readJsonBodies(app);
  registerAuthEndpoints(app, options);
  for (const bound of BOUND_ROUTES) register(app, bound, options);
  await app.ready();
  return app;
}

/** Starts to listen; resolves with the address. Port 0 takes a free one. */
export async function listen(app: FastifyInstance, address: string, port: number): Promise<AddressInfo> {
  await app.listen({ host: address, port });
  return app.server.address() as AddressInfo;
}

function register(app: FastifyInstance, bound: BoundRoute, options: AppOptions): void {
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
      const bearer = readToken(request.headers.authorization);
      const { actor, named } = await authenticate(context, { bearer, sandboxId: namedSandboxId(params), requestId: request.id });
      request.actor = actor;
      await authorize(context, actor, route, params, named);
      request.sandbox = named.sandbox;
    },
    handler: async (request, reply) => {
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

/** What the caller asked, parsed by the route's schemas. */
function readCall(bound: BoundRoute, request: FastifyRequest, reply: FastifyReply): AnyCall {
  const { request: schemas } = bound.route;
  const respondAsync = bound.honoursRespondAsync && prefersAsync(request.headers.prefer);
  if (respondAsync) void reply.header('preference-applied', 'respond-async');
  return {
    params: schemas.params === undefined ? undefined : parseWith(schemas.params, request.params, 'path'),
    query: schemas.query === undefined ? undefined : parseWith(schemas.query, request.query, 'query'),
    body: schemas.body === undefined ? undefined : parseWith(schemas.body, request.body, 'body'),
    actor: request.actor,
    sandbox: request.sandbox,
    respondAsync,
    idempotencyKey: bound.route.idempotent === true ? readIdempotencyKey(request.raw) : undefined,
    noteReplay: () => void reply.header('idempotent-replayed', 'true'),
    signal: abortedWhenGone(reply),
  };
}

/** Aborts when the caller's connection closes before the answer was written. */
function abortedWhenGone(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) gone.abort(new CallerGone('the caller closed its connection'));
  });
  return gone.signal;
}

/** Headers of every answer. */
function stamp(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return reply.headers({ 'x-request-id': request.id, 'cache-control': 'no-store' });
}

function pathOf(request: FastifyRequest): string {
  return request.url.split('?', 1)[0]?.slice(0, 200) ?? '';
}

/** Answers what is not even HTTP, and closes. */
function answerUnreadable(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const tooLarge = error.code === 'HPE_HEADER_OVERFLOW';
  const [status, body] = tooLarge
    ? ['431 Request Header Fields Too Large', envelope('request_header_too_large', 'the headers are longer than 16 KiB')]
    : ['400 Bad Request', envelope('invalid_request', 'the request is not valid HTTP/1.1, or did not arrive in time')];
  const text = JSON.stringify(body);
  socket.end(
    `HTTP/1.1 ${status}\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`,
  );
}
