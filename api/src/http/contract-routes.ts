// The contract's routes over HTTP: converts requests to calls and responses to replies.
import { DEFAULT_BODY_BYTES, EXEC_KEEPALIVE_MS } from '@berth/contract/route/limits.ts';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest, RouteHandlerMethod, RouteOptions } from 'fastify';
import type { BoundAnswer, BoundRoute } from '../call/bind.ts';
import { callRoute, type RouteCall, type RouteResponse } from '../call/call-route.ts';
import type { HeldBytes } from '../call/bytes-in-flight.ts';
import type { CallControl } from '../call/control.ts';
import { preferredWaitSeconds } from '../call/prefer.ts';
import { abortWhenGone } from './answers/caller-gone.ts';
import { KeepAlive, type KeepAliveTimes } from './answers/keep-alive.ts';
import { logOf, logRequest, outcomeOf } from './answers/request-log.ts';
import type { EntryPoint } from './entry-point.ts';
import { hasJsonBody, jsonParser, readBody, uploadOf, type ParseBody } from './requests/body.ts';
import { readWithLongField } from './requests/long-field.ts';
import { nestedQuery } from './requests/nested-query.ts';
import { Turns } from './requests/turns.ts';
import { toFastifyPath } from './requests/paths.ts';

interface ContractRoutesOptions {
  /** Delays of a long call's headers and spaces; the contract's when absent. */
  keepAlive?: KeepAliveTimes | undefined;
}

export function contractRoutes(control: CallControl, { keepAlive }: ContractRoutesOptions = {}): EntryPoint {
  return {
    register: (app) => {
      const parseJson = jsonParser(app);
      const turns = new Turns();
      app.addHook('preClose', (done) => {
        control.context.holds.end();
        done();
      });
      for (const bound of control.routes) {
        if ('connect' in bound) continue;
        app.route(
          routeOptions(bound, async (request, reply) => {
            const times =
              bound.route.keepsAlive === true ? keepAliveOf(bound.route, request, reply, keepAlive) : undefined;
            const body = (held: HeldBytes): Promise<unknown> => readJson(bound, request, reply, parseJson, held, turns);
            const call = callOf(request, reply, request.headers.authorization, body);
            if (times !== undefined) call.onStart = (headers) => times.start(headers);
            const response = await callRoute(control, bound, call);
            releaseWhenSent(reply, response.held);
            return times?.end(response) === true ? reply : sendResponse(reply, response);
          }),
        );
      }
    },
  };
}

/** A caller that declares how long it waits gets the real status within that time. */
function keepAliveOf(
  route: BoundRoute['route'],
  request: FastifyRequest,
  reply: FastifyReply,
  times: KeepAliveTimes = EXEC_KEEPALIVE_MS,
): KeepAlive {
  const seconds = preferredWaitSeconds(request.raw.headersDistinct['prefer'] ?? []);
  if (seconds === undefined) return new KeepAlive(reply, route.response.status, times);

  void reply.header('preference-applied', `wait=${seconds}`);
  return new KeepAlive(reply, route.response.status, { ...times, headersAfter: seconds * 1_000 });
}

/**
 * Fastify options of a route. The call is admitted before its body is read, so no body of a refused
 * caller is read.
 */
export function routeOptions(
  { route }: BoundRoute,
  serve: (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>,
): RouteOptions {
  return {
    method: route.method,
    url: toFastifyPath(route.path),
    onRequest: serve,
    handler: handlerBehind(route.name),
  };
}

/**
 * Fastify's handler behind a hook that responds. Fastify calls it after a response that broke off,
 * of which it has no event. An error would be logged with the URL, which may be a credential.
 */
export function handlerBehind(name: string): RouteHandlerMethod {
  return async (request, reply) => {
    await Promise.resolve();
    if (!reply.raw.closed && !reply.raw.destroyed) throw new Error(`${name} reached Fastify's handler`);
    logRequest(request, reply, outcomeOf(reply.raw));
  };
}

export function callOf(
  request: FastifyRequest,
  reply: FastifyReply,
  credential: string | undefined,
  body: (held: HeldBytes) => unknown,
): RouteCall {
  // Created on demand: plain reads do not need it.
  let signal: AbortSignal | undefined;
  return {
    credential,
    address: request.ip,
    requestId: request.id,
    log: logOf(request),
    input: {
      params: request.params as Record<string, string>,
      // Read after the access check, whose refusals come before those of the query.
      get query() {
        return nestedQuery(request.query as Record<string, unknown>);
      },
      // A range is defined for GET only (RFC 9110).
      header: (name) =>
        request.method === 'HEAD' && name === 'range' ? [] : (request.raw.headersDistinct[name] ?? []),
      body,
    },
    get signal() {
      signal ??= abortWhenGone(reply);
      return signal;
    },
  };
}

export function sendResponse(reply: FastifyReply, { status, headers, body }: RouteResponse): FastifyReply {
  void reply.code(status).headers(headers);
  if (body instanceof Readable && reply.request.method === 'HEAD') {
    // Fastify would read it to its end, and replace the length of an absent body.
    body.destroy();
    return reply.send(Readable.from([]));
  }
  return reply.send(body);
}

/** Releases bytes that a response keeps, also if its caller has left already. */
export function releaseWhenSent({ raw }: FastifyReply, held: HeldBytes | undefined): void {
  if (raw.closed || raw.destroyed) held?.release();
  else raw.once('close', () => held?.release());
}

async function readJson(
  { route }: BoundAnswer,
  request: FastifyRequest,
  reply: FastifyReply,
  parse: ParseBody,
  held: HeldBytes,
  turns: Turns,
): Promise<unknown> {
  if (route.upload === true) return uploadOf(request);
  if (route.method === 'GET' || !hasJsonBody(request)) return undefined;
  const limitBytes = route.bodyBytes ?? DEFAULT_BODY_BYTES;
  try {
    return route.longField === undefined
      ? await parse(request, await readBody(request.raw, limitBytes, held))
      : await readWithLongField(request, route.longField, limitBytes, parse, held, turns);
  } catch (error) {
    // The caller may have sent more than was read.
    void reply.header('connection', 'close');
    throw error;
  }
}
