// Clients that cannot read the response to a refused upgrade, nor hold their WebSocket back: the
// outcome of the handshake, and pauses of a tunnel, as text frames.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { after, before, test } from 'node:test';
import { OUTCOME_SUBPROTOCOL, WEBSOCKET_SUBPROTOCOL } from '@berth/contract/connections/websocket.ts';
import { errorEnvelope } from '@berth/contract/route/errors.ts';
import { untilTrue } from '../../../../os/test/until.ts';
import { startApi, type TestApi } from '../../world/api.ts';
import { ExecRefusal } from '../../world/guests/exec-refusal.ts';
import { requestWebSocket, RecordingWebSocket } from '../../world/websocket-client.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

const BOTH = [WEBSOCKET_SUBPROTOCOL, OUTCOME_SUBPROTOCOL];
const ask = (id: string, offered: readonly string[], { path = 'tunnel?port=8080', token = api.token } = {}) =>
  requestWebSocket(`${api.url}/v1/sandboxes/${id}/${path}`, {}, [...offered, `berth.bearer.${api.secret(token)}`]);

/** Frames and close of a refused client. */
async function refusal(id: string, more: { path?: string; token?: string } = {}) {
  const answer = await ask(id, BOTH, more);
  assert.ok('socket' in answer, JSON.stringify(answer));
  assert.equal(answer.socket.protocol, OUTCOME_SUBPROTOCOL);
  const heard = new RecordingWebSocket(answer.socket);
  const { code } = await heard.closed;
  assert.equal(heard.texts.length, 1);
  const [{ refused }] = heard.texts as [{ refused: { status: number; requestId: string; body: unknown } }];
  assert.match(refused.requestId, /^req_/);
  return [refused.status, errorEnvelope.parse(refused.body).error.code, code];
}

test('a client that offers berth.outcome gets a refusal as a frame, then a close with its status', async () => {
  const { id } = await api.makeSandbox('ready');
  api.front.stream = () => {
    throw new ExecRefusal('port_refused', 'words of the host');
  };
  assert.deepEqual(await refusal(id), [502, 'port_refused', 4502]);
  assert.deepEqual(await refusal(id, { path: 'tunnel?port=0' }), [400, 'invalid_request', 4400]);
  assert.deepEqual(await refusal(id, { path: 'terminal?tty=false' }), [400, 'invalid_request', 4400]);
  assert.deepEqual(await refusal(id, { token: 'brt_nonsense_of_a_token' }), [401, 'unauthenticated', 4401]);
  assert.deepEqual(await refusal('sbx_nothing'), [404, 'sandbox_not_found', 4404]);
  const { id: asleep } = await api.makeSandbox('stopped');
  assert.deepEqual(await refusal(asleep), [409, 'sandbox_state_conflict', 4409]);
  // The outcome alone is no handshake of this API.
  const alone = await ask(id, [OUTCOME_SUBPROTOCOL]);
  assert.ok('text' in alone && alone.status === 400);
  const other = await ask(id, [WEBSOCKET_SUBPROTOCOL]);
  assert.ok('text' in other && other.status === 502);
});

test('a client that offers berth.outcome gets the opening as the first frame', async () => {
  const { id } = await api.makeSandbox('ready');
  api.front.stream = () => (stream) => void stream.end('first');
  const answer = await ask(id, BOTH);
  assert.ok('socket' in answer);
  const heard = new RecordingWebSocket(answer.socket);
  await heard.until(({ texts }) => texts.length === 2);
  assert.deepEqual(heard.texts, [{ opened: true }, { end: true }]);
  assert.equal(heard.bytes.toString(), 'first');
  heard.socket.send('{"end":true}');
  assert.equal((await heard.closed).code, 1000);
});

test('a refused client that does not answer the close is disconnected', async () => {
  const request = http.get(`${api.url}/v1/sandboxes/sbx_nothing/tunnel`, {
    headers: {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': randomBytes(16).toString('base64'),
      'sec-websocket-protocol': `${BOTH.join()},berth.bearer.${api.token}`,
    },
  });
  const [, socket] = (await once(request, 'upgrade')) as [unknown, Socket];
  socket.resume();
  await once(socket, 'end');
  socket.destroy();
});

test('a paused tunnel sends nothing more until it resumes, and takes input meanwhile', async () => {
  const { id } = await api.makeSandbox('ready');
  let inSandbox: Duplex | undefined;
  api.front.stream = () => (stream) => void (inSandbox = stream);
  const answer = await ask(id, [WEBSOCKET_SUBPROTOCOL]);
  assert.ok('socket' in answer && inSandbox !== undefined);
  const heard = new RecordingWebSocket(answer.socket);
  const sandbox: Duplex = inSandbox;
  let typed = '';
  sandbox.on('data', (chunk: Buffer) => (typed += chunk.toString()));
  heard.socket.send('{"pause":true}');
  heard.socket.send(Buffer.from('input'));
  await untilTrue('the input arrives', () => typed === 'input');
  const piece = Buffer.alloc(1_048_576);
  let written = 0;
  for (; written < 64 && sandbox.write(piece);) written += 1;
  heard.socket.send(Buffer.from(' and more'));
  await untilTrue('later input arrives', () => typed === 'input and more');
  assert.equal(heard.bytes.length, 0);
  heard.socket.send('{"pause":false}');
  await heard.until(({ bytes }) => bytes.length === (written + 1) * piece.length);
  heard.socket.close();
});
