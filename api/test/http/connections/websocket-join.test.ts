// Cases hard to provoke over a network: frames at the moment of a connection's end, and many frames
// at once.
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { Duplex } from 'node:stream';
import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import { controlFrame } from '@berth/protocol/terminal-frames.ts';
import type { FastifyBaseLogger } from 'fastify';
import type { WebSocket } from 'ws';
import { terminalDialect } from '../../../src/http/connections/terminal-dialect.ts';
import { TUNNEL_DIALECT } from '../../../src/http/connections/tunnel-dialect.ts';
import { join, type Dialect } from '../../../src/http/connections/websocket-join.ts';
import { CodedError } from '../../../src/rules/coded-error.ts';
import type { SandboxConnection } from '../../../src/services/connections/connections.ts';

/** WebSocket that records its calls. */
class FakeWebSocket extends EventEmitter {
  bufferedAmount = 0;
  readonly sent: unknown[] = [];
  readonly closes: number[] = [];
  reason = '';
  isPaused = false;
  /** Called after the last sent frame. */
  told = (): void => undefined;

  pause(): void {
    this.isPaused = true;
  }
  resume(): void {
    this.isPaused = false;
  }
  ping(): void {}
  send(frame: unknown, _options: object, sent: () => void): void {
    this.sent.push(frame);
    this.told = sent;
  }
  close(code: number, reason: string): void {
    this.closes.push(code);
    this.reason = reason;
  }
}

/** Joined with a stream whose writes and end wait until they are released. */
function joined(
  t: TestContext,
  dialect: Dialect,
  { refusal = null, ...options }: { halfOpenMs?: number; refusal?: CodedError | null } = {},
): { websocket: FakeWebSocket; stream: Duplex; releaseHeld: () => void } {
  const held: (() => void)[] = [];
  const stream = new Duplex({
    read() {},
    write: (_chunk, _encoding, callback) => void held.push(callback),
    final: (callback) => void held.push(callback),
    writableHighWaterMark: 1,
  });
  const websocket = new FakeWebSocket();
  const connection = {
    stream,
    over: new Promise(() => undefined),
    close: () => undefined,
    refusalAfterBreak: async () => refusal,
  };
  const log = { debug: () => undefined } as unknown as FastifyBaseLogger;
  void join(websocket as unknown as WebSocket, connection as unknown as SandboxConnection, dialect, {
    log,
    ...options,
  });
  t.after(() => websocket.emit('close', 1000));
  return { websocket, stream, releaseHeld: () => held.splice(0).forEach((callback) => callback()) };
}

test('keys in flight when the shell exits do not fail the terminal', async (t) => {
  const { websocket, stream, releaseHeld } = joined(t, terminalDialect());
  stream.push(controlFrame({ exit: 0 }));
  stream.push(null);
  await turn();
  assert.deepEqual(websocket.sent, ['{"exit":0}']);
  websocket.emit('message', Buffer.from('x'), true);
  assert.deepEqual(websocket.closes, []);
  releaseHeld();
  await turn();
  await turn();
  assert.deepEqual(websocket.closes, [1000]);
});

for (const [what, refusal, code, reason] of [
  [
    'before the notice that its sandbox sleeps',
    new CodedError('sandbox_state_conflict', 'asleep'),
    4_409,
    'sandbox_state_conflict',
  ],
  ['although its sandbox is awake', null, 1_011, 'the connection to the terminal was lost'],
] as const) {
  test(`a terminal whose stream ends ${what} closes with ${code}`, async (t) => {
    const { websocket, stream } = joined(t, terminalDialect(), { refusal });
    stream.push(null);
    await turn();
    await turn();
    assert.deepEqual([websocket.closes, websocket.reason], [[code], reason]);
  });
}

test('a client that sends after its end is a protocol error', async (t) => {
  const { websocket } = joined(t, TUNNEL_DIALECT);
  websocket.emit('message', Buffer.from('{"end":true}'), false);
  websocket.emit('message', Buffer.from('more'), true);
  assert.deepEqual(websocket.closes, [1003]);
});

test('many frames at once pause the client and add no listener to the stream', async (t) => {
  const { websocket, stream, releaseHeld } = joined(t, TUNNEL_DIALECT);
  const before = stream.listenerCount('drain');
  for (let frame = 0; frame < 1_000; frame += 1) websocket.emit('message', Buffer.from('x'), true);
  assert.equal(stream.listenerCount('drain'), before);
  assert.equal(websocket.isPaused, true);
  while (stream.writableLength > 0) {
    releaseHeld();
    await turn();
  }
  assert.equal(websocket.isPaused, false);
  assert.equal(stream.listenerCount('drain'), before);
});

test('sandbox output is not read while much is unsent, and is read again after sending', async (t) => {
  const { websocket, stream } = joined(t, TUNNEL_DIALECT);
  websocket.bufferedAmount = 2 * 1_048_576;
  stream.push('first');
  await turn();
  stream.push('second');
  await turn();
  assert.deepEqual([websocket.sent.map(String), stream.isPaused()], [['first'], true]);
  websocket.bufferedAmount = 0;
  websocket.sent.length = 0;
  websocket.told();
  await turn();
  assert.deepEqual([websocket.sent.map(String), stream.isPaused()], [['second'], false]);
});

test('the time of silence after one direction ended is 25 s unless it is set', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { websocket } = joined(t, TUNNEL_DIALECT);
  websocket.emit('message', Buffer.from('{"end":true}'), false);
  t.mock.timers.tick(24_999);
  assert.deepEqual(websocket.closes, []);
  t.mock.timers.tick(1);
  assert.deepEqual([websocket.closes, websocket.reason], [[1011], 'silent for 25 s after one direction ended']);
});

for (const [ends, end] of [
  ['client', ({ websocket }) => websocket.emit('message', Buffer.from('{"end":true}'), false)],
  ['sandbox', ({ stream }) => stream.push(null)],
] as const satisfies readonly [string, (sides: ReturnType<typeof joined>) => unknown][]) {
  test(`a tunnel whose ${ends} has ended closes after a time of silence, and names it`, async (t) => {
    const sides = joined(t, TUNNEL_DIALECT, { halfOpenMs: 300 });
    const { websocket, stream, releaseHeld } = sides;
    await delay(400);
    assert.deepEqual(websocket.closes, []);
    end(sides);
    for (let count = 0; count < 8; count += 1) {
      if (ends === 'client') stream.push('more');
      else websocket.emit('message', Buffer.from('more'), true);
      await delay(50);
      releaseHeld();
      websocket.told();
    }
    assert.deepEqual(websocket.closes, []);
    await delay(400);
    assert.deepEqual([websocket.closes, websocket.reason], [[1011], 'silent for 0.3 s after one direction ended']);
  });
}
