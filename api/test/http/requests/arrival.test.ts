// Deadline of a request body, short enough here to be reached.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { errorEnvelope } from '@berth/contract/route/errors.ts';
import { BODY_ARRIVES_MS, boundArrivals } from '../../../src/http/requests/arrival.ts';
import { startApi, type TestApi } from '../../world/api.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false, bounds: { bodyArrivesMs: 300 } });
});
after(() => api.close());

/** Returns all bytes until the server closes the connection. */
async function exchange(text: string): Promise<string> {
  const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
  let answer = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => (answer += chunk));
  socket.on('error', () => undefined);
  socket.write(text);
  await once(socket, 'close');
  return answer;
}

const post = (authorization: string): string =>
  `POST /v1/orgs/${api.orgId}/projects HTTP/1.1\r\nhost: berth.example.test\r\n` +
  `${authorization}content-type: application/json\r\n` +
  'content-length: 100\r\n\r\n{"name"';

test('a body that misses its deadline is 400 and closes the connection', async () => {
  assert.equal(BODY_ARRIVES_MS, 60_000);
  const answer = await exchange(post(`authorization: Bearer ${api.token}\r\n`));
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  assert.match(head, /^HTTP\/1\.1 400 /);
  const { code, message } = errorEnvelope.parse(JSON.parse(body)).error;
  assert.deepEqual(
    [code, message],
    ['invalid_request', 'the request is not valid HTTP/1.1, or did not arrive in time'],
  );
});

test('a client that has its response before the body arrives gets no second one', async () => {
  const answer = await exchange(post(''));
  assert.match(answer, /^HTTP\/1\.1 401 /);
  assert.equal(answer.match(/HTTP\/1\.1 /g)?.length, 1);
});

test('a closed connection with an incomplete body keeps no memory', async (t) => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const responses: WeakRef<ServerResponse>[] = [];
  const server = createServer((request, response) => {
    responses.push(new WeakRef(response));
    bound(request, response);
    response.end('early');
  });
  const bound = boundArrivals(server, BODY_ARRIVES_MS);
  t.after(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');

  const closed: Promise<void>[] = [];
  server.on('connection', (socket) => {
    closed.push(new Promise((resolve) => void socket.once('close', () => resolve())));
  });
  for (let count = 0; count < 10; count += 1) {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\npart');
    await once(socket, 'data');
    socket.destroy();
  }
  await Promise.all(closed);
  await new Promise(setImmediate);
  collect();
  // Node keeps the last one for reuse of its parser.
  const kept = responses.filter((response) => response.deref() !== undefined).length;
  assert.ok(responses.length === 10 && kept <= 1, `${kept} of ${responses.length} responses are kept`);
});
