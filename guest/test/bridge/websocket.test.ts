// The WebSocket of a terminal's program: frames of every length, and their limits.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createConnection, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { untilTrue } from '../../../os/test/until.ts';
import type { Json } from '../../src/bridge/agent-process.ts';
import { listenForPrograms, type WebSocketClient } from '../../src/bridge/terminal/websocket.ts';

const HEAD =
  'GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n' +
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n';
const MASK = Buffer.from([1, 2, 3, 4]);

let folder: string;
let server: Server;
let client: WebSocketClient;
let received: Json[];
let closed = 0;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-websocket-'));
  server = await listenForPrograms(join(folder, 'socket'), (connected) => {
    client = connected;
    return { message: (message) => void received.push(message), closed: () => void (closed += 1) };
  });
});
after(async () => {
  server.close();
  await rm(folder, { recursive: true });
});
beforeEach(() => {
  received = [];
  closed = 0;
});

async function connected(): Promise<Socket> {
  const socket = createConnection(join(folder, 'socket'));
  socket.write(HEAD);
  const [response] = (await once(socket, 'data')) as [Buffer];
  // The example of RFC 6455.
  assert.match(response.toString(), /^HTTP\/1\.1 101 [^]*Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=\r\n\r\n$/);
  return socket;
}

function frame(text: string | Buffer, first = 0x81): Buffer {
  const bytes = Buffer.from(text);
  const { length } = bytes;
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head[0] = first;
  head[1] = 0x80 | (length < 126 ? length : length < 65_536 ? 126 : 127);
  if (head.length === 4) head.writeUInt16BE(length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, MASK, bytes.map((byte, at) => byte ^ (MASK[at % 4] ?? 0))]);
}

/** Bytes until the length is reached. */
async function read(socket: Socket, length: number): Promise<Buffer> {
  let bytes = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
  });
  await untilTrue(`${length} bytes`, () => bytes.length >= length);
  return bytes;
}

for (const length of [1, 125, 126, 65_535, 65_536, 1_000_000]) {
  test(`messages with a text of ${length} characters arrive whole in both directions`, async () => {
    const socket = await connected();
    const text = 'x'.repeat(length);
    const whole = frame(JSON.stringify({ text }));
    for (let at = 0; at < whole.length; at += 50_000) socket.write(whole.subarray(at, at + 50_000));
    await untilTrue('the message', () => received.length === 1);
    assert.deepEqual(received, [{ text }]);

    const answer = JSON.stringify({ text });
    client.send({ text });
    const head = answer.length < 126 ? 2 : answer.length < 65_536 ? 4 : 10;
    assert.equal((await read(socket, head + answer.length)).toString('utf8', head), answer);
    socket.destroy();
    await untilTrue('the end', () => closed === 1);
  });
}

test('frames arrive byte by byte, several at once, in parts and between pings', async () => {
  const socket = await connected();
  socket.setNoDelay(true);
  const pong = read(socket, 7);
  for (const byte of frame('{"a":1}')) socket.write(Buffer.from([byte]));
  socket.write(Buffer.concat([frame('{"b"', 0x01), frame('hello', 0x89), frame(':2}', 0x80), frame('{"c":3}')]));
  await untilTrue('the messages', () => received.length === 3);
  assert.deepEqual(received, [{ a: 1 }, { b: 2 }, { c: 3 }]);
  assert.deepEqual(await pong, Buffer.from('\u008a\u0005hello', 'latin1'));
  socket.destroy();
  await untilTrue('the end', () => closed === 1);
});

for (const [what, bytes] of [
  ['without a mask', Buffer.from([0x81, 0x02, 0x7b, 0x7d])],
  ['over 16 MiB', Buffer.from([0x81, 0xff, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0])],
  ['that is no JSON', frame('{')],
  ['that is no object', frame('[]')],
  ['with bytes instead of text', frame('{}', 0x82)],
  ['that closes the connection', frame('', 0x88)],
] as const) {
  test(`a frame ${what} closes the connection`, async () => {
    const socket = await connected();
    socket.write(bytes);
    await once(socket, 'close');
    await untilTrue('the end', () => closed === 1);
    assert.deepEqual(received, []);
  });
}

for (const [what, head] of [
  ['without a key', 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['without an end', 'x'.repeat(20_000)],
] as const) {
  test(`a request ${what} is not upgraded`, async () => {
    const socket = createConnection(join(folder, 'socket'));
    socket.on('error', () => undefined).resume();
    socket.write(head);
    await once(socket, 'close');
    assert.equal(closed, 0);
  });
}
