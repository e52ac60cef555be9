// Traffic through a preview of a real VM: WebSockets, live events, large bodies in both directions
// byte for byte, ranges, and concurrent requests.
import assert from 'node:assert/strict';
import { createHash, randomBytes, type Hash } from 'node:crypto';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { after, before, test } from 'node:test';
import { awakeSandbox } from '../world/client.ts';
import { startInstance, type Instance } from '../world/instance.ts';
import { APP_PORT, runInGuest, startApp, TOGETHER } from './app.ts';
import { PreviewClient, publicLink } from './client.ts';
import { slotCounters, type DeviceCount } from './slot-counters.ts';
import { slotNumberOf } from '../world/witness.ts';

const FILE_BYTES = 100_000_000;
const CHUNK_BYTES = 1_000_000;
const EVENTS = 20;
/** For requests that would wait for ever if buffered on the way. */
const SLOW_TEST = { timeout: 300_000 };

let berth: Instance;
let id: string;
let previewClient: PreviewClient;

before(async () => {
  berth = await startInstance('previews-traffic');
  ({ id } = await awakeSandbox(berth));
  await startApp(berth, id);
  previewClient = new PreviewClient(berth, (await publicLink(berth, id, APP_PORT)).url);
  const { status, body } = await previewClient.byLink('/');
  assert.deepEqual([status, body.toString()], [200, `the app at ${previewClient.host}`]);
  await run(`head -c ${FILE_BYTES} /dev/urandom > app/big`);
});

after(async () => {
  previewClient?.leave();
  await berth?.end();
});

const run = (command: string): Promise<string> => runInGuest(berth, id, command);
const sumInGuest = async (file: string): Promise<string> => (await run(`sha256sum < ${file}`)).split(' ', 1)[0] ?? '';

test('a WebSocket carries text and binary messages of all sizes both ways, in order', SLOW_TEST, async () => {
  const opened = await previewClient.webSocket('/echo');
  assert.ok('socket' in opened, JSON.stringify(opened));
  const { socket } = opened;
  const sent = [
    Buffer.alloc(0),
    Buffer.from('grüße 🦭'),
    randomBytes(125),
    randomBytes(70_000),
    randomBytes(3_000_000),
  ];
  const heard: Buffer[] = [];
  const all = new Promise<void>((resolve, reject) => {
    socket.on('message', (data: Buffer) => {
      heard.push(data);
      if (heard.length === sent.length) resolve();
    });
    socket.once('close', (code) => reject(new Error(`closed with ${code}`)));
  });
  socket.resume();
  for (const message of sent) socket.send(message);
  await all;
  for (const [index, message] of sent.entries()) assert.ok(heard[index]?.equals(message), `message ${index}`);
  socket.send('text stays text');
  const [text, isBinary] = (await once(socket, 'message')) as [Buffer, boolean];
  assert.deepEqual([text.toString(), isBinary], ['text stays text', false]);
  socket.close(1_000);
  assert.equal(((await once(socket, 'close')) as [number])[0], 1_000);
});

test('each event of a stream arrives before the next one is produced', SLOW_TEST, async () => {
  const stream = await previewClient.open('/events', { headers: { accept: 'text/event-stream' } });
  assert.deepEqual([stream.statusCode, stream.headers['content-type']], [200, 'text/event-stream']);
  const events: string[] = [];
  let text = '';
  for await (const chunk of stream.setEncoding('utf8') as AsyncIterable<string>) {
    text += chunk;
    // The app awaits a confirmation per event: buffering anywhere on the path stalls the stream.
    assert.ok(text.split('\n\n').length <= 2, `more than one event at once: ${text}`);
    if (!text.endsWith('\n\n')) continue;
    events.push(text);
    text = '';
    if (events.length === EVENTS) break;
    assert.equal((await previewClient.ask(`/seen?event=${events.length}`)).status, 204);
  }
  assert.deepEqual(
    events,
    Array.from({ length: EVENTS }, (_, index) => `id: ${index + 1}\ndata: event ${index + 1}\n\n`),
  );
});

test('100 MB are downloaded unchanged', async () => {
  const answer = await previewClient.open('/file');
  assert.deepEqual([answer.statusCode, answer.headers['content-length']], [200, String(FILE_BYTES)]);
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  assert.equal(bytes, FILE_BYTES);
  assert.equal(hash.digest('hex'), await sumInGuest('app/big'));
});

for (const [how, headers] of [
  ['whose length is said', { 'content-length': String(FILE_BYTES) }],
  ['whose length nobody knows', {}],
] as const) {
  test(`100 MB ${how} are uploaded unchanged`, async () => {
    const hash = createHash('sha256');
    const { status, body } = await previewClient.ask('/file', {
      method: 'PUT',
      headers,
      body: Readable.from(randomChunks(hash)),
    });
    const sha256 = hash.digest('hex');
    assert.equal(status, 200);
    assert.deepEqual(JSON.parse(body.toString()), { bytes: FILE_BYTES, sha256 });
    assert.equal(await sumInGuest('app/arrived'), sha256);
  });
}

function* randomChunks(hash: Hash): Generator<Buffer> {
  for (let sent = 0; sent < FILE_BYTES; sent += CHUNK_BYTES) {
    const chunk = randomBytes(CHUNK_BYTES);
    hash.update(chunk);
    yield chunk;
  }
}

test('no packet is dropped between sandbox and host during 100 MB each way', async () => {
  const counts = await slotCounters(await slotNumberOf(berth.dataFolder, id));
  for (const { device, fromPeerBytes, toPeerBytes, lost } of counts) {
    assert.ok(
      Math.min(fromPeerBytes, toPeerBytes) > FILE_BYTES,
      `${device} is not on the way: ${fromPeerBytes} and ${toPeerBytes} bytes`,
    );
    assert.equal(lost, 0, device);
  }
  // Packets dropped by the firewall between them are not counted here. Some concern the slot
  // itself: ARP requests, and refused resolver queries.
  const [tap, inner] = counts as [DeviceCount, DeviceCount];
  const kept = [tap.fromPeerPackets - inner.toPeerPackets, inner.fromPeerPackets - tap.toPeerPackets];
  assert.ok(
    kept.every((packets) => Math.abs(packets) < 50),
    `packets that came into the slot and did not leave it, from the guest and to it: ${kept.join(', ')}`,
  );
});

test('a range request returns exactly those bytes', async () => {
  for (const [range, start, length] of [
    ['bytes=0-0', 0, 1],
    ['bytes=54321098-54323097', 54_321_098, 2_000],
    ['bytes=-777', FILE_BYTES - 777, 777],
    [`bytes=${FILE_BYTES - 5}-`, FILE_BYTES - 5, 5],
  ] as const) {
    const { status, headers, body } = await previewClient.ask('/file', { headers: { range } });
    assert.deepEqual(
      [status, headers['content-range'], headers['content-length']],
      [206, `bytes ${start}-${start + length - 1}/${FILE_BYTES}`, String(length)],
    );
    assert.equal(
      body.toString('base64'),
      await run(`tail -c +${start + 1} app/big | head -c ${length} | base64 -w 0`),
      range,
    );
  }
});

test(`${TOGETHER} concurrent requests reach the app, and each gets its own response`, SLOW_TEST, async () => {
  const answers = await Promise.all(
    Array.from({ length: TOGETHER }, (_, index) => previewClient.ask(`/together?number=${index}`)),
  );
  assert.deepEqual(
    answers.map(({ status, body }) => `${status} ${body.toString()}`),
    Array.from({ length: TOGETHER }, (_, index) => `200 number ${index}`),
  );
});
