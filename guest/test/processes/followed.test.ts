// The stream of a process's output.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { followedOrder } from '@berth/protocol/calls/processes.ts';
import { COMMAND_STREAM, FrameReader, TERMINAL_FRAME } from '@berth/protocol/terminal-frames.ts';
import { startDaemon, until, type TestDaemon } from '../daemon.ts';
import { requestUpgrade } from '../terminals/connection.ts';

const ID = 'prc_aaaaaaaaaaaaaaaaaaaaaaaa';
const DEFAULTS = { stdin: false, keepAwake: false, name: null, limitSeconds: null, digest: 'd'.repeat(64) };

async function started(t: TestContext, command: string, more: object = {}): Promise<TestDaemon> {
  const daemon = await startDaemon(t);
  t.after(async () => {
    if (daemon.isRunning) await daemon.call('DELETE', `/processes/${ID}`);
  });
  const body = { ...DEFAULTS, outputBytes: 65_536, command, ...more };
  const answer = await daemon.call('PUT', `/processes/${ID}`, body);
  assert.equal(answer.status, 200, answer.text);
  return daemon;
}

/** Received by a reader: bytes by stream, and control frames with the bytes before them. */
class Reader {
  readonly socket: Socket;
  readonly bytes = new Map<number, Buffer>();
  readonly orders: unknown[] = [];
  hasEnded = false;

  constructor(socket: Socket, isTerminal: boolean) {
    this.socket = socket;
    const frames = new FrameReader((kind, content) => {
      if (kind === TERMINAL_FRAME.control) this.orders.push(followedOrder.parse(JSON.parse(content.toString('utf8'))));
      else if (content.length > 0) this.#add(isTerminal ? 0 : (content[0] ?? 0), content.subarray(isTerminal ? 0 : 1));
    });
    socket.on('data', (chunk: Buffer) => frames.push(chunk));
    socket.once('close', () => (this.hasEnded = true));
    socket.once('end', () => {
      this.hasEnded = true;
      socket.end();
    });
  }

  static async open(daemon: TestDaemon, query: string, isTerminal = false): Promise<Reader> {
    const answer = await requestUpgrade(daemon, `/processes/${ID}/stream?${query}`);
    assert.ok('destroySoon' in answer, JSON.stringify(answer));
    return new Reader(answer, isTerminal);
  }

  textOf(stream: number): string {
    return this.bytes.get(stream)?.toString() ?? '';
  }

  #add(stream: number, content: Buffer): void {
    this.bytes.set(stream, Buffer.concat([this.bytes.get(stream) ?? Buffer.alloc(0), content]));
  }
}

test('a stream has what is stored, then what is written, and last that it is complete', async (t) => {
  const daemon = await started(t, 'echo one; echo two >&2; read line; echo "$line"', { stdin: true });
  const reader = await Reader.open(daemon, 'stdout=1&stderr=0');
  await until('the stored output', () => reader.textOf(COMMAND_STREAM.stderr) === 'two\n');
  assert.deepEqual(reader.orders, [{ starts: { stdout: 1, stderr: 0 } }]);
  const base64 = Buffer.from('three\n').toString('base64');
  await daemon.call('POST', `/processes/${ID}/input`, { offset: 0, base64, end: true });
  await until('its end', () => reader.hasEnded);
  assert.equal(reader.textOf(COMMAND_STREAM.stdout), 'ne\nthree\n');
  assert.deepEqual(reader.orders.slice(1), [{ complete: true }]);

  const tailed = await Reader.open(daemon, 'stdout=0&stderr=0&tail=3');
  await until('its end', () => tailed.hasEnded);
  assert.deepEqual(tailed.orders, [{ starts: { stdout: 7, stderr: 1 } }, { complete: true }]);
  assert.deepEqual([...tailed.bytes.values()].map(String).toSorted(), ['ee\n', 'wo\n']);
});

test('a terminal has one output without stream numbers', async (t) => {
  const daemon = await started(t, 'test -t 1 && echo terminal', { terminal: { rows: 24, cols: 80 } });
  const reader = await Reader.open(daemon, 'stdout=0&stderr=0&output=0', true);
  await until('its end', () => reader.hasEnded);
  assert.deepEqual(reader.orders, [{ starts: { output: 0 } }, { complete: true }]);
  assert.equal(reader.textOf(0), 'terminal\r\n');
});

test('a reader that pauses blocks no process, and learns how much it has lost', async (t) => {
  const total = 67_108_864;
  const daemon = await started(t, `head -c ${total} /dev/zero`);
  const reader = await Reader.open(daemon, 'stdout=0&stderr=0');
  reader.socket.pause();
  await until('the process ends', async () => {
    const answer = await daemon.call('GET', `/processes/${ID}?waitMs=1000`);
    return (JSON.parse(answer.text) as { process: { end: unknown } }).process.end !== null;
  });
  reader.socket.resume();
  await until('the output ends', () => reader.hasEnded);
  const lost = reader.orders.flatMap((order) => {
    const { lost: one } = order as { lost?: { stream: string; bytes: number } };
    return one === undefined ? [] : [one];
  });
  assert.ok(lost.length > 0 && lost.every(({ stream }) => stream === 'stdout'));
  const kept = reader.bytes.get(COMMAND_STREAM.stdout)?.length ?? 0;
  assert.equal(
    lost.reduce((sum, { bytes }) => sum + bytes, kept),
    total,
  );
  assert.deepEqual(reader.orders.at(-1), { complete: true });
});

test('the removal of the process ends the stream, and says so', async (t) => {
  const daemon = await started(t, 'echo begun; exec sleep 1000');
  const reader = await Reader.open(daemon, 'stdout=0&stderr=0');
  await until('its output', () => reader.textOf(COMMAND_STREAM.stdout) !== '');
  await daemon.call('DELETE', `/processes/${ID}`);
  await until('its end', () => reader.hasEnded);
  assert.deepEqual(reader.orders.at(-1), { removed: true });
  const refused = await requestUpgrade(daemon, `/processes/${ID}/stream?stdout=0&stderr=0`);
  assert.ok('status' in refused && refused.status === 404, JSON.stringify(refused));
});

test('a killed daemon ends the stream without a last frame; the next one goes on at an offset', async (t) => {
  const daemon = await started(t, 'echo before; until [ -e go ]; do sleep 0.05; done; echo after');
  const reader = await Reader.open(daemon, 'stdout=0&stderr=0');
  await until('its output', () => reader.textOf(COMMAND_STREAM.stdout) === 'before\n');
  await daemon.stop('SIGKILL');
  await until('its end', () => reader.hasEnded);
  assert.deepEqual(reader.orders, [{ starts: { stdout: 0, stderr: 0 } }]);
  await daemon.start();
  const next = await Reader.open(daemon, 'stdout=7&stderr=0');
  writeFileSync(join(daemon.codeFolder, 'go'), '');
  await until('its end', () => next.hasEnded);
  assert.equal(next.textOf(COMMAND_STREAM.stdout), 'after\n');
});
