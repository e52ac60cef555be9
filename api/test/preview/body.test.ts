// Proxied bodies: they arrive unchanged at any reading speed, and their memory is freed without the
// garbage collector.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  Agent,
  createServer,
  request,
  type IncomingMessage,
  type OutgoingMessage,
  type RequestListener,
  type Server,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { after, before, beforeEach, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { pipeBody, pipeResponse } from '../../src/preview/body.ts';

const SENT = randomBytes(8 * 1_048_576);
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

let app: Server;
let relay: Server;
let answerAs: RequestListener;
/** Read buffers of the app's responses, and the parser's chunks of them. */
let read: Uint8Array[];
let parts: Uint8Array[];
before(async () => {
  app = createServer((asked, answer) => answerAs(asked, answer));
  relay = createServer((asked, answer) => {
    const outgoing = request({
      port: portOf(app),
      agent,
      method: asked.method,
      headers: { 'transfer-encoding': 'chunked' },
    });
    if (asked.method === 'POST') pipeBody(asked, outgoing);
    else outgoing.end();
    asked.on('data', (part: Uint8Array) => parts.push(part));
    outgoing.once('response', (answered) => {
      answered.on('data', (part: Uint8Array) => parts.push(part));
      const note = (chunk: Uint8Array): unknown => read.push(chunk);
      const { socket } = answered;
      socket.prependListener('data', note);
      answered.once('end', () => socket.off('data', note));
      pipeResponse(answered, answer);
    });
  });
  for (const server of [app, relay]) await once(server.listen(0, '127.0.0.1'), 'listening');
});
beforeEach(() => {
  read = [];
  parts = [];
});
after(() => {
  agent.destroy();
  app.close();
  relay.close();
});

const portOf = (server: Server): number => (server.address() as AddressInfo).port;
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

async function visit(body?: Buffer, pauseMs?: number): Promise<Buffer> {
  const visitor = request({ port: portOf(relay), method: body === undefined ? 'GET' : 'POST' });
  visitor.end(body);
  const [answer] = (await once(visitor, 'response')) as [IncomingMessage];
  const taken: Buffer[] = [];
  for await (const part of answer as AsyncIterable<Buffer>) {
    taken.push(part);
    if (pauseMs !== undefined) await setTimeout(pauseMs);
  }
  return Buffer.concat(taken);
}

/** Freed memory has no length. */
const held = (pieces: Uint8Array[]): number => pieces.reduce((bytes, { byteLength }) => bytes + byteLength, 0);

for (const [how, pauseMs] of [
  ['fast', undefined],
  ['slowly', 1],
] as const) {
  test(`a long response that is read ${how} arrives unchanged and its memory is freed`, async () => {
    answerAs = (_asked, answer) => answer.setHeader('content-length', SENT.length).end(SENT);
    // The second request reuses the connection.
    for (const _ of [1, 2]) assert.equal(sha256(await visit(undefined, pauseMs)), sha256(SENT));
    assert.ok(parts.length > 100 && read.length > 100, `${parts.length} parts of ${read.length}`);
    const before = 2 * 2 * SENT.length;
    // Bytes read with a head precede the known length; short chunks are not worth freeing.
    assert.ok(held(parts) + held(read) < before / 2, `${held(parts)} and ${held(read)} of ${before} bytes are held`);
  });
}

test('a chunked response arrives unchanged for all chunk sizes', async () => {
  answerAs = (_asked, answer) => {
    for (let at = 0, size = 1; at < SENT.length; at += size, size = (size * 3) % 200_003)
      answer.write(SENT.subarray(at, at + size));
    answer.end();
  };
  const sent = sha256(await visit());
  assert.equal(sent, sha256(SENT));
});

test('a request body arrives unchanged and its memory is freed', async () => {
  answerAs = (asked, answer) => {
    const hash = createHash('sha256');
    asked.on('data', (part: Uint8Array) => hash.update(part)).once('end', () => answer.end(hash.digest('hex')));
  };
  assert.equal((await visit(SENT)).toString(), sha256(SENT));
  assert.ok(held(parts) < SENT.length / 2, `${held(parts)} of ${SENT.length} bytes are held`);
});

test('a paused body is drained when its destination closes', async () => {
  answerAs = (asked) =>
    void asked
      .pause()
      .once('data', () => undefined)
      .pause();
  const ended = Promise.withResolvers<void>();
  const holder = createServer((asked) => {
    const outgoing = request({ port: portOf(app), method: 'POST' }).on('error', () => undefined);
    pipeBody(asked, outgoing);
    asked.once('pause', () => outgoing.destroy());
    asked.once('end', () => ended.resolve());
  });
  await once(holder.listen(0, '127.0.0.1'), 'listening');
  const visitor = request({ port: portOf(holder), method: 'POST' }).on('error', () => undefined);
  visitor.end(SENT);
  await ended.promise;
  visitor.destroy();
  holder.close();
});

test('short chunks are not freed: their memory may be shared', async () => {
  const word = 'a few bytes';
  answerAs = (_asked, answer) => answer.end(word);
  assert.equal((await visit()).toString(), word);
  assert.equal(Buffer.concat(parts).toString(), word);
});

test('a chunk that is part of a larger buffer is not freed', async () => {
  const memory = Buffer.alloc(65_536, 'm');
  const from = Object.assign(new PassThrough(), { socket: null });
  const to = new PassThrough();
  pipeBody(from as unknown as IncomingMessage, to as unknown as OutgoingMessage);
  from.end(memory.subarray(0, 32_768));
  assert.equal((await buffer(to)).toString(), 'm'.repeat(32_768));
  assert.equal(memory.toString(), 'm'.repeat(65_536));
});

test('Node’s HTTP parser hands out copies of socket reads', async () => {
  answerAs = (_asked, answer) => answer.setHeader('content-length', SENT.length).end(SENT);
  const outgoing = request({ port: portOf(app) }).end();
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
  const memory = new Set<ArrayBufferLike>();
  answer.socket.prependListener('data', (chunk: Uint8Array) => memory.add(chunk.buffer));
  let ofTheParser = 0;
  for await (const part of answer as AsyncIterable<Buffer>) {
    ofTheParser += 1;
    assert.ok(!memory.has(part.buffer), 'a part lies in the memory of a read: body.ts must not free it');
  }
  assert.ok(memory.size > 10 && ofTheParser > 10);
});
