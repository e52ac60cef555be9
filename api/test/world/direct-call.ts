// Calls routes without HTTP, as a different adapter would.
import { Readable } from 'node:stream';
import type { Method } from '@berth/contract/route/route.ts';
import type { Upload } from '@berth/protocol/http/serve.ts';
import type { BoundRoute } from '../../src/call/bind.ts';
import { callRoute, connectRoute, type RouteCall, type RouteResponse } from '../../src/call/call-route.ts';
import type { CallControl } from '../../src/call/control.ts';
import { newRequestId } from '../../src/http/answers/request-id.ts';
import { parseBody, type Answer, type CallOptions } from './answer.ts';

/** `path` may have a query, as in a request; `options.rawBody` is for uploads only. */
export async function callDirectly(
  control: CallControl,
  method: Method,
  path: string,
  { token, body, rawBody, headers = {}, signal }: CallOptions,
): Promise<Answer> {
  const url = new URL(path, 'http://direct.example.test');
  const { bound, params } = routeTo(control, method, url.pathname);
  const given = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  const requestId = newRequestId();
  const call: RouteCall = {
    credential: typeof token === 'string' ? `Bearer ${token}` : given.get('authorization'),
    address: '127.0.0.1',
    requestId,
    log: control.context.log.child({ reqId: requestId }),
    input: {
      params,
      query: Object.fromEntries(url.searchParams),
      header: (name) => [given.get(name) ?? []].flat(),
      body: () => (bound.route.upload === true ? uploadOf(rawBody ?? '') : body),
    },
    signal: signal ?? new AbortController().signal,
  };
  const response =
    'connect' in bound ? await connectRoute(control, bound, call) : await callRoute(control, bound, call);
  if ('held' in response) response.held?.release();
  return answerOf(response, requestId);
}

function uploadOf(content: string | Uint8Array): Upload {
  const bytes = Buffer.from(content);
  return { bytes: bytes.length, content: Readable.from([bytes], { objectMode: false }) };
}

function routeTo(
  { routes }: CallControl,
  method: Method,
  path: string,
): { bound: BoundRoute; params: Record<string, string> } {
  for (const bound of routes) {
    const params = bound.route.method === method ? paramsOf(bound.route.path, path) : null;
    if (params !== null) return { bound, params };
  }
  throw new Error(`the contract has no ${method} ${path}`);
}

function answerOf(response: Awaited<ReturnType<typeof connectRoute>>, requestId: string): Answer {
  const headers = new Headers({ ...response.headers, 'x-request-id': requestId });
  if ('connection' in response) {
    response.connection.close();
    return { status: 101, headers, body: undefined };
  }
  const { status, body }: RouteResponse = response;
  if (body instanceof Readable) {
    body.destroy();
    return { status, headers, body: undefined };
  }
  return { status, headers, body: parseBody(headers, typeof body === 'string' ? body : JSON.stringify(body)) };
}

/** Parameters of a path that matches the pattern; null for any other. */
function paramsOf(pattern: string, path: string): Record<string, string> | null {
  const named = pattern.replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)');
  const found = new RegExp(`^${named}$`).exec(path);
  if (found === null) return null;
  return Object.fromEntries(
    Object.entries(found.groups ?? {}).map(([name, value]) => [name, decodeURIComponent(value)]),
  );
}
