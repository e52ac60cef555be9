// Flow control of terminals: the order `pause` stops the output, and nothing else.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { after, afterEach, before, test } from 'node:test';
import {
  bytesFrames,
  COMMAND_STREAM,
  controlFrame,
  FrameReader,
  outputFrame,
} from '@berth/protocol/terminal-frames.ts';
import { startApi, type TestApi } from '../../world/api.ts';
import { untilTrue } from '../../../../os/test/until.ts';
import { requestWebSocket, RecordingWebSocket } from '../../world/websocket-client.ts';

const MIB = 1_048_576;
/** Buffers of the kernel between sandbox and API; the API itself holds at most 1 MiB. */
const MOST_UNDER_WAY = 24 * MIB;

let api: TestApi;
/** Sandbox's end of the last terminal. */
let shell: { stream: Duplex; typed: string };
before(async () => {
  api = await startApi({ durable: false, bounds: { pingEveryMs: 500 } });
  api.front.stream = () => (stream) => {
    const own = { stream, typed: '' };
    shell = own;
    const reader = new FrameReader((_kind, content) => (own.typed += content.toString('utf8')));
    stream.on('data', (chunk: Buffer) => reader.push(chunk));
    stream.on('error', () => undefined);
  };
});
after(() => api.close());
afterEach(() => shell.stream.destroy());

async function open(query = '', token = api.token): Promise<{ heard: RecordingWebSocket; id: string }> {
  const { id } = await api.makeSandbox('ready');
  const url = `${api.url}/v1/sandboxes/${id}/terminal${query}`;
  const answer = await requestWebSocket(url, { authorization: `Bearer ${token}` });
  assert.ok('socket' in answer, JSON.stringify(answer));
  return { heard: new RecordingWebSocket(answer.socket), id };
}

/** Sends the order, and resolves when the API has read it: keys pass in order. */
async function order({ socket }: RecordingWebSocket, pause: boolean): Promise<void> {
  const before = shell.typed.length;
  socket.send(JSON.stringify({ pause }));
  socket.send(Buffer.from('.'));
  await untilTrue('the keys arrive', () => shell.typed.length > before);
}

/** Writes until the sandbox is held back; returns the written bytes. */
async function fill(frame: (content: Buffer) => Uint8Array): Promise<Buffer> {
  const written: Buffer[] = [];
  let bytes = 0;
  for (;;) {
    const content = randomBytes(60_000);
    written.push(content);
    bytes += content.length;
    assert.ok(bytes < MOST_UNDER_WAY, `${bytes} bytes were taken`);
    if (shell.stream.write(frame(content))) continue;
    const drained = await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), 1_000);
      shell.stream.once('drain', () => (clearTimeout(timer), resolve(true)));
    });
    if (!drained) return Buffer.concat(written);
  }
}

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

for (const [what, query, frame, strip] of [
  ['terminal', '', bytesFrames, (bytes: Buffer) => bytes],
  [
    'command with pipes',
    '?tty=false&command=x',
    (content: Buffer) => outputFrame(COMMAND_STREAM.stdout, content),
    // Frames keep their bounds: 60,000 bytes each, after the number of their stream.
    (bytes: Buffer) =>
      Buffer.concat(
        Array.from({ length: bytes.length / 60_001 }, (_, at) => bytes.subarray(at * 60_001 + 1, (at + 1) * 60_001)),
      ),
  ],
] as const) {
  test(`a paused ${what} sends nothing, blocks the program, and resumes without a loss`, async () => {
    const { heard } = await open(query);
    await order(heard, true);
    await order(heard, true);
    const written = await fill(frame);
    assert.equal(heard.bytes.length, 0);
    await order(heard, false);
    await heard.until(({ bytes }) => strip(bytes).length === written.length);
    assert.equal(sha256(strip(heard.bytes)), sha256(written));
    await order(heard, false);
    shell.stream.end(controlFrame({ exit: 3 }));
    assert.deepEqual(await heard.closed, { code: 1000, reason: '' });
    assert.deepEqual(heard.texts, [{ exit: 3 }]);
  });
}

test('the exit waits behind the pause, and arrives after it', async () => {
  const { heard } = await open();
  await order(heard, true);
  shell.stream.end(Buffer.concat([bytesFrames(Buffer.from('bye')), controlFrame({ exit: 0 })]));
  await untilTrue('pings pass', async () => {
    await new Promise((resolve) => heard.socket.once('ping', resolve));
    return true;
  });
  assert.deepEqual([heard.bytes.length, heard.texts], [0, []]);
  heard.socket.send('{"pause":false}');
  assert.deepEqual(await heard.closed, { code: 1000, reason: '' });
  assert.deepEqual([heard.bytes.toString(), heard.texts], ['bye', [{ exit: 0 }]]);
});

test('a paused terminal closes when its sandbox sleeps, with unread output', async () => {
  const { heard, id } = await open();
  await order(heard, true);
  await fill(bytesFrames);
  await api.call('POST', `/v1/sandboxes/${id}/sleep`, { token: api.token });
  assert.deepEqual(await heard.closed, { code: 4409, reason: 'sandbox_state_conflict' });
  await untilTrue('the stream is closed', () => shell.stream.destroyed);
});

test('a paused terminal closes when its key is revoked', async () => {
  const token = await api.makeKey({ role: 'member' });
  const { heard } = await open('', token);
  await order(heard, true);
  const { body } = await api.call('GET', '/v1/me', { token });
  await api.db.updateTable('api_key').set({ revoked_at: new Date() }).where('created_by', '=', body.id).execute();
  assert.deepEqual(await heard.closed, { code: 4401, reason: 'unauthenticated' });
});

test('a paused terminal closes when the connection to the sandbox breaks', async () => {
  const { heard } = await open();
  await order(heard, true);
  shell.stream.destroy();
  assert.equal((await heard.closed).code, 1011);
});

test('a client that pauses with much unread input can resume, and then all of it passes', async () => {
  const { heard } = await open();
  shell.stream.pause();
  const paste = randomBytes(6 * MIB)
    .toString('latin1')
    .replaceAll(/[^a-z]/g, 'x');
  for (let at = 0; at < paste.length; at += MIB) heard.socket.send(Buffer.from(paste.slice(at, at + MIB)));
  // The order waits behind the input, as does its end.
  for (let order = 0; order < 40; order += 1) heard.socket.send(JSON.stringify({ pause: order % 2 === 0 }));
  heard.socket.send('{"pause":true}');
  heard.socket.send(Buffer.from('!'));
  heard.socket.send('{"pause":false}');
  shell.stream.resume();
  await untilTrue('all of it arrives', () => shell.typed.length === paste.length + 1);
  assert.equal(shell.typed, `${paste}!`);
  shell.stream.end(Buffer.concat([bytesFrames(Buffer.from('bye')), controlFrame({ exit: 0 })]));
  assert.deepEqual(await heard.closed, { code: 1000, reason: '' });
  assert.equal(heard.bytes.toString(), 'bye');
});

test('more than 2 MiB of unread input while paused closes the terminal and names the limit', async () => {
  const { heard } = await open();
  await order(heard, true);
  shell.stream.pause();
  for (let sent = 0; sent < 64; sent += 1) heard.socket.send(Buffer.alloc(MIB / 2, 'x'));
  const { code, reason } = await heard.closed;
  assert.equal(code, 1003);
  assert.match(reason, /^at most 2097152 bytes of input may wait while output is paused/);
});

test('a paused client that disconnects closes the stream of the sandbox', async () => {
  const { heard } = await open();
  await order(heard, true);
  await fill(bytesFrames);
  heard.socket.terminate();
  await untilTrue('the stream is closed', () => shell.stream.destroyed);
});
