// Sockets that reuse their read buffers: spliced data arrives unchanged, however slowly it is
// taken, and little memory is allocated.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { buffer, text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { splice } from '@berth/protocol/splice.ts';
import { connectRecycling } from '../../src/guest/read-buffers.ts';

const SENT = randomBytes(16 * 1_048_576);

let app: Server;
let relay: Server;
let serve: (socket: Socket) => void;
let chunks: Uint8Array[];
let ended: Promise<string>;
before(async () => {
  app = createServer({ allowHalfOpen: true }, (socket) => serve(socket));
  app.listen(0, '127.0.0.1');
  await once(app, 'listening');
  relay = createServer({ allowHalfOpen: true }, (caller) => {
    const stream = connectRecycling({
      host: '127.0.0.1',
      port: (app.address() as AddressInfo).port,
      allowHalfOpen: true,
    });
    stream.on('data', (chunk: Uint8Array) => chunks.push(chunk));
    ended = splice(caller, stream);
  });
  relay.listen(0, '127.0.0.1');
  await once(relay, 'listening');
});
after(() => {
  app.close();
  relay.close();
});

function visit(): Socket {
  chunks = [];
  return connect({ host: '127.0.0.1', port: (relay.address() as AddressInfo).port, allowHalfOpen: true });
}

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

for (const [how, pause] of [
  ['fast', false],
  ['slowly', true],
] as const) {
  test(`bytes read ${how} arrive as sent, in reused memory`, async () => {
    serve = (socket) => socket.end(SENT);
    const visitor = visit();
    visitor.end();
    const parts: Buffer[] = [];
    for await (const part of visitor as AsyncIterable<Buffer>) {
      parts.push(part);
      if (pause) await setTimeout(1);
    }
    assert.equal(sha256(Buffer.concat(parts)), sha256(SENT));
    assert.equal(await ended, 'ended');
    const memory = new Set(chunks.map(({ buffer }) => buffer)).size;
    assert.ok(memory < chunks.length / 2, `${memory} pieces of memory for ${chunks.length} chunks`);
  });
}

test('both directions end separately', async () => {
  serve = (socket) => {
    const parts: Buffer[] = [];
    socket.on('data', (part: Buffer) => parts.push(part)).once('end', () => socket.end(sha256(Buffer.concat(parts))));
  };
  const visitor = visit();
  visitor.end(SENT);
  assert.equal(await text(visitor), sha256(SENT));
  assert.equal(await ended, 'ended');
});

test('a broken stream ends its peer, and the next stream gets none of its bytes', async () => {
  serve = (socket) => void socket.write(SENT.subarray(0, 1_048_576), () => socket.resetAndDestroy());
  const broken = visit();
  broken.on('error', () => undefined);
  broken.resume();
  await new Promise((resolve) => broken.once('close', resolve));
  assert.equal(await ended, 'broken');

  const others = randomBytes(1_048_576);
  serve = (socket) => socket.end(others);
  const visitor = visit();
  visitor.end();
  assert.equal(sha256(await buffer(visitor)), sha256(others));
});

test('a few unread bytes do not retain their whole read buffer', async () => {
  const word = Buffer.from('a few bytes');
  const held: Uint8Array[] = [];
  const sending = Promise.withResolvers<Socket>();
  serve = (socket) => sending.resolve(socket.setNoDelay(true));
  const stream = connectRecycling({ host: '127.0.0.1', port: (app.address() as AddressInfo).port });
  const socket = await sending.promise;
  while (held.length < 20) {
    socket.write(word);
    const [chunk] = (await once(stream, 'data')) as [Uint8Array];
    held.push(chunk);
  }
  socket.end();
  stream.destroy();
  assert.equal(Buffer.concat(held).toString(), word.toString().repeat(20));
  const memory = new Set(held.map(({ buffer }) => buffer)).size;
  assert.ok(memory <= 2, `${memory} pieces of memory for ${held.length} chunks of ${word.length} bytes`);
});
