// A server with scripted responses, and a client of it.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { Berth, BerthError, type BerthOptions } from '../src/index.ts';

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

export const json =
  (status: number, body: unknown, headers: Record<string, string> = {}): Answer =>
  (_, response) =>
    void response
      .writeHead(status, { 'content-type': 'application/json', 'x-request-id': 'req_1', ...headers })
      .end(JSON.stringify(body));
export const refusal = (status: number, code: string, headers: Record<string, string> = {}): Answer =>
  json(status, { error: { code, message: `no: ${code}` } }, headers);
export const broken: Answer = (request) => void request.socket.destroy();
interface Scripted {
  berth: Berth;
  url: string;
  /** Method, path and headers of each request. */
  seen: { method: string; path: string; headers: IncomingMessage['headers']; body: string }[];
}

/** A client of a server with these responses, repeating the last. */
export async function against(
  t: TestContext,
  answers: readonly Answer[],
  options: BerthOptions = {},
): Promise<Scripted> {
  const seen: Scripted['seen'] = [];
  const script = [...answers];
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      seen.push({ method: request.method ?? '', path: request.url ?? '', headers: request.headers, body });
      (script.length > 1 ? script.shift() : script[0])?.(request, response);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { berth: new Berth({ url, apiKey: 'brt_key', orgId: 'org_1', projectId: 'prj_1', ...options }), url, seen };
}

export async function failureOf(call: Promise<unknown>): Promise<BerthError> {
  const error: unknown = await call.then(
    () => assert.fail('it succeeded'),
    (error: unknown) => error,
  );
  assert.ok(error instanceof BerthError, String(error));
  return error;
}
