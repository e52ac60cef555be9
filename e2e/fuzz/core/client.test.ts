// Responses that the fuzzer takes for faults, and those it accepts.
import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { FuzzClient } from './client.ts';
import type { FuzzRequest } from './kind.ts';
import { FuzzReport } from './report.ts';

const READ: FuzzRequest = { method: 'GET', target: '/v1/sandboxes/sbx_x/file?path=a' };
const FILE = { path: '/code/a', content: 'x', encoding: 'utf8', size: 1, sha256: 'a'.repeat(64) };
const error = (code: string): object => ({ error: { code, message: 'no' } });

async function ask(
  t: TestContext,
  request: FuzzRequest,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<{ answered: number | null; findings: string[]; report: FuzzReport }> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const report = new FuzzReport(() => {});
  const fuzzClient = new FuzzClient(
    { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token: 't' },
    report,
    500,
  );
  const answered = await fuzzClient.send('c1.1', request);
  return { answered: answered?.status ?? null, findings: report.findings.map(({ finding }) => finding), report };
}

const json =
  (status: number, body: unknown) =>
  (_: IncomingMessage, response: ServerResponse): void =>
    void response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body));

for (const [what, request, status, body] of [
  ['a success within its schema', READ, 200, FILE],
  ['a refusal of the route', READ, 404, error('file_not_found')],
  ['a refusal of a path that is none', { method: 'GET', target: '/v1/x' }, 404, error('route_not_found')],
  ['an empty answer to HEAD', { ...READ, method: 'HEAD' }, 404, ''],
] as const) {
  test(`${what} is no finding`, async (t) => {
    const { answered, findings } = await ask(t, request, json(status, body));
    assert.deepEqual([answered, findings], [status, []]);
  });
}

for (const [what, status, body, finding] of [
  ['an answer of 500', 500, error('internal'), 'fault'],
  ['a machine that is said not to answer', 503, error('sandbox_unreachable'), 'wrong'],
  ['a success outside its schema', 200, { ...FILE, more: 1 }, 'wrong'],
  ['another success than the route has', 201, FILE, 'wrong'],
  ['an error without envelope', 404, { message: 'no' }, 'wrong'],
  ['an error that the route does not have', 413, error('guest_disk_full'), 'wrong'],
  ['an error with another status than its own', 400, error('file_not_found'), 'wrong'],
  ['what is no JSON', 200, '<html>', 'wrong'],
] as const) {
  test(`${what} is a finding`, async (t) => {
    const { answered, findings } = await ask(t, READ, json(status, body));
    assert.deepEqual([answered, findings], [null, [finding]]);
  });
}

test('a request without a response is hung, one whose connection breaks is a wrong response', async (t) => {
  assert.deepEqual((await ask(t, READ, () => {})).findings, ['hung']);
  const { findings, report } = await ask(t, READ, (request) => void request.socket.destroy());
  assert.deepEqual(findings, ['wrong']);
  assert.match(
    report.lastLine('7'),
    /^fuzz: seed 7: 1 requests in \d+ s \(\); answers of 500: 0, hung requests: 0, wrong answers: 1$/,
  );
  assert.equal(report.clean, false);
});
