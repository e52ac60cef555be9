// The server around the routes: the health check, requests that are not HTTP, and its end.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { errorEnvelope } from '@berth/contract/errors.ts';
import { startApi, type TestApi } from '../api.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

/** Everything that comes back on a connection of its own, until the server closes it. */
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

test('HEAD answers as GET does, without a body', async () => {
  assert.equal((await api.call('HEAD', '/v1/me')).status, 200);
  assert.equal((await api.call('HEAD', '/v1/me', { token: null })).status, 401);
});

test('what is not HTTP, and a head that is too long, are answered with the envelope and closed', async () => {
  for (const [sent, status, code] of [
    ['nonsense\r\n\r\n', '400', 'invalid_request'],
    [`GET /health HTTP/1.1\r\nhost: x\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`, '431', 'request_header_too_large'],
  ] as const) {
    const answer = await exchange(sent);
    assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `));
    assert.equal(errorEnvelope.parse(JSON.parse(answer.split('\r\n\r\n')[1] ?? '')).error.code, code);
  }
});

test('a stopping server lets open requests end, and refuses new ones on open connections with 503 shutting_down', async () => {
  const { id } = await api.makeSandbox('ready');
  const started = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<void>();
  api.front.exec = async () => {
    started.resolve();
    await finish.promise;
    return { exitCode: 0, stdout: 'done', stderr: '', truncated: false, timedOut: false };
  };
  const body = JSON.stringify({ command: 'x' });
  const head = [`authorization: Bearer ${api.token}`, 'content-type: application/json', `content-length: ${body.length}`, 'host: x'].join(
    '\r\n',
  );
  const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
  let answer = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => (answer += chunk));
  socket.write(`POST /v1/sandboxes/${id}/exec HTTP/1.1\r\n${head}\r\n\r\n${body}`);
  await started.promise;
  const refused = once(api.app.server, 'request');
  const closed = api.app.close();
  while (api.app.server.listening) await new Promise((resolve) => setImmediate(resolve));
  // Sent behind the open request on the same connection.
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
