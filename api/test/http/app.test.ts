// The server around the routes: health check, invalid HTTP, body limits, request log, shutdown.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { errorEnvelope } from '@berth/contract/route/errors.ts';
import { DEFAULT_BODY_BYTES } from '@berth/contract/route/limits.ts';
import { ROUTES } from '@berth/contract/routes.ts';
import { secondsToProbe } from '../../../protocol/test/keepalive-timer.ts';
import { backlogOf } from '../../../protocol/test/listen-backlog.ts';
import { signInAs, startApi, type TestApi } from '../world/api.ts';
import { makePerson, type Person } from '../world/people-rows.ts';
import { filledPath, prepareRequest } from '../sweeps/route-requests.ts';

let api: TestApi;
let owner: Person;
let token: string;
before(async () => {
  api = await startApi({ durable: false });
  owner = await makePerson(api.db, { [api.orgId]: 'owner' });
  ({ token } = await signInAs(api.db, owner.userId));
});
after(() => api.close());

/** Returns all bytes of a dedicated connection until the server closes it. */
async function exchange(text: string): Promise<string> {
  const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
  let answer = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => (answer += chunk));
  socket.write(text);
  await once(socket, 'close');
  return answer;
}

test('the health check needs no token and names the service', async () => {
  const { body, headers } = await api.call('GET', '/health', { token: null });
  assert.deepEqual(body, { ok: true, service: 'berth' });
  assert.equal(headers.get('cache-control'), 'no-store');
});

test('TCP probes an idle caller after 20 s, so that a vanished one is noticed', async () => {
  const port = Number(new URL(api.url).port);
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  const seconds = await secondsToProbe(port, socket.localPort ?? 0);
  assert.ok(seconds <= 20, `${seconds} s`);
  socket.destroy();
});

test('callers above the 511 of Node wait to be accepted, and are not reset', async () => {
  const { actual, expected } = await backlogOf(Number(new URL(api.url).port));
  assert.equal(actual, expected);
});

test('HEAD returns the head of GET without a body', async () => {
  assert.equal((await api.call('HEAD', '/v1/me')).status, 200);
  assert.equal((await api.call('HEAD', '/v1/me', { token: null })).status, 401);
});

test('invalid HTTP and an oversized head get the error envelope and are closed', async () => {
  for (const [sent, status, code] of [
    ['nonsense\r\n\r\n', '400', 'invalid_request'],
    [`GET /health HTTP/1.1\r\nhost: x\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`, '431', 'request_header_too_large'],
  ] as const) {
    const answer = await exchange(sent);
    assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `));
    assert.equal(errorEnvelope.parse(JSON.parse(answer.split('\r\n\r\n')[1] ?? '')).error.code, code);
  }
});

for (const route of ROUTES.filter(({ method, upload }) => method !== 'GET' && upload !== true)) {
  const limit = route.bodyBytes ?? DEFAULT_BODY_BYTES;
  test(`${route.name}: a body of ${limit} bytes is read, a byte more is 413 before parsing`, async () => {
    const prepared = await prepareRequest(route, { api, org: api, caller: owner });
    const path = filledPath(route, prepared.params);
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    // Invalid JSON, so that parsing it gives 400.
    const longest = new Uint8Array(limit).fill(0x78);
    const inPieces = new ReadableStream({
      start: (stream) => {
        stream.enqueue(longest);
        stream.enqueue(longest.subarray(0, 1));
        stream.close();
      },
    });
    try {
      assert.equal((await api.call(route.method, path, { token, rawBody: longest })).body.error.code, 'invalid_json');
      const tooLong = await api.call(route.method, path, { token, rawBody: new Uint8Array(limit + 1).fill(0x78) });
      assert.equal(tooLong.body.error.code, 'payload_too_large');
      assert.ok(tooLong.body.error.message.includes(String(limit)));
      // Without Content-Length.
      const streamed = await fetch(api.url + path, { method: route.method, headers, body: inPieces, duplex: 'half' });
      assert.equal(errorEnvelope.parse(await streamed.json()).error.code, 'payload_too_large');
    } finally {
      await prepared.undo?.();
    }
  });
}

/** Returns the log line of a request. */
async function lineOf(requestId: string | null): Promise<Record<string, unknown>> {
  for (;;) {
    const lines = api.logged().trimEnd().split('\n');
    const mine = lines
      .filter((line) => line.includes(`"reqId":"${requestId}"`))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.ok(mine.length <= 1, 'more than one line');
    if (mine[0] !== undefined) return mine[0];
    // The line is written after the response.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test('each request logs one line: id, path pattern, result, caller and org', async () => {
  const { id } = await api.makeSandbox('ready');
  const answer = await api.call('GET', `/v1/sandboxes/${id}?token=abc`, { token });
  const { method, path, status, code, caller, callerKind, org, ms, msg } = await lineOf(
    answer.headers.get('x-request-id'),
  );
  assert.deepEqual(
    { method, path, status, code, org, msg },
    {
      method: 'GET',
      path: '/v1/sandboxes/:sandboxId',
      status: 200,
      code: undefined,
      org: api.orgId,
      msg: 'request',
    },
  );
  assert.match(String(caller), /^ses_/);
  assert.equal(callerKind, 'session');
  assert.equal(typeof ms, 'number');
});

test('a refused request logs its code, without a caller or path that is unknown', async () => {
  const other = await api.makeOrg();
  const refused = await api.call('GET', `/v1/orgs/${other.orgId}/projects`);
  const line = await lineOf(refused.headers.get('x-request-id'));
  assert.deepEqual(
    [line['status'], line['code'], line['callerKind'], line['org']],
    [403, 'org_access_denied', 'api_key', api.orgId],
  );
  const unknown = await lineOf((await api.call('GET', '/v1/me', { token: null })).headers.get('x-request-id'));
  assert.deepEqual([unknown['status'], unknown['caller'], unknown['org']], [401, undefined, undefined]);
  const nowhere = await lineOf(
    (await api.call('GET', '/secret/place?token=x', { token: null })).headers.get('x-request-id'),
  );
  assert.deepEqual([nowhere['status'], nowhere['path']], [404, 'unknown']);
  assert.ok(!api.logged().includes('/secret/place'));
});

test('a malformed request is logged too, without its bytes', async () => {
  const answer = await exchange('nonsense-with-a-secret\r\n\r\n');
  const line = await lineOf(/x-request-id: (req_[0-9a-f]{32})/.exec(answer)?.[1] ?? null);
  assert.deepEqual([line['status'], line['code']], [400, 'invalid_request']);
  assert.ok(!api.logged().includes('nonsense-with-a-secret'));
});

test('a stopping server completes open requests and refuses new ones with 503 shutting_down', async () => {
  const { id } = await api.makeSandbox('ready');
  const started = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<void>();
  api.front.exec = async () => {
    started.resolve();
    await finish.promise;
    return { exitCode: 0, stdout: 'done', stderr: '', truncated: false, timedOut: false };
  };
  const body = JSON.stringify({ command: 'x' });
  const head = [
    `authorization: Bearer ${api.token}`,
    'content-type: application/json',
    `content-length: ${body.length}`,
    'host: x',
  ].join('\r\n');
  const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
  let answer = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => (answer += chunk));
  socket.write(`POST /v1/sandboxes/${id}/exec HTTP/1.1\r\n${head}\r\n\r\n${body}`);
  await started.promise;
  const refused = once(api.app.server, 'request');
  const closed = api.app.close();
  while (api.app.server.listening) await new Promise((resolve) => setImmediate(resolve));
  // Pipelined behind the open request.
  socket.write('GET /health HTTP/1.1\r\nhost: x\r\n\r\n');
  await refused;
  finish.resolve();
  await once(socket, 'close');
  await closed;
  const [first, second] = answer.split('HTTP/1.1 ').slice(1);
  assert.match(first ?? '', /^200 [\s\S]*"stdout":"done"/);
  assert.match(second ?? '', /^503 [\s\S]*"code":"shutting_down"/);
  await assert.rejects(fetch(`${api.url}/health`));
});
