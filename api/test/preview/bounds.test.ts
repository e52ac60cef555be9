// Limits of previews, short enough here to be reached: idle timeouts, connections of a sandbox, and
// shutdown.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { after, before, beforeEach, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { PREVIEW_PROXY } from '@berth/contract/route/limits.ts';
import { sql } from 'kysely';
import { boundsOf } from '../../src/preview/bounds.ts';
import { CHANGES_CHANNEL } from '../../src/store/database/changes.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { bareServer, startPreview, readAll, type PreviewWorld } from './world.ts';

type App = (request: IncomingMessage, response: ServerResponse) => void;

const BOUNDS = { uploadSilenceMs: 1_000, answerMs: 10_000, silenceMs: 300, streamSilenceMs: 2_000, connections: 4 };

let world: PreviewWorld;
/** World with a short response timeout, only for tests of that timeout. */
let brief: PreviewWorld;
let app: App;
before(async () => {
  app = (_request, response) => void response.end('app');
  const serve: App = (request, response) => app(request, response);
  world = await startPreview(serve, { bounds: { previews: BOUNDS } });
  brief = await startPreview(serve, { bounds: { previews: { ...BOUNDS, answerMs: 500 } } });
  await world.cookie();
  // The setup calls the app, which may be late on a loaded host.
  await untilTrue('the app is in time once', () =>
    brief.cookie().then(
      () => true,
      () => false,
    ),
  );
});
after(async () => {
  await world.close();
  await brief.close();
});
beforeEach(() => {
  app = (_request, response) => void response.end('app');
});

const codeOf = (text: string): unknown => (JSON.parse(text) as { error: { code: unknown } }).error.code;

test('the limits default to the contract’s', () => {
  assert.deepEqual(boundsOf(), PREVIEW_PROXY);
  assert.deepEqual(boundsOf({ answerMs: 1 }), { ...PREVIEW_PROXY, answerMs: 1 });
});

test('an app that responds too late is 504 and its request is aborted', async () => {
  const gone = Promise.withResolvers<void>();
  app = (_request, response) => void response.once('close', () => gone.resolve());
  const { status, text } = await brief.visit('/');
  assert.deepEqual([status, codeOf(text)], [504, 'preview_timed_out']);
  await gone.promise;
});

test('a handshake without a response is 504', async () => {
  await brief.serve(
    3001,
    bareServer((socket) => void socket.resume()),
  );
  const { host, token } = await brief.link(3001);
  const answer = await brief.raw(
    `GET /?token=${token} HTTP/1.1\r\nhost: ${host}\r\n` +
      'connection: Upgrade\r\nupgrade: websocket\r\n' +
      'sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
  );
  assert.match(answer, /^HTTP\/1\.1 504 /);
});

test('an upload that stalls is 408; an upload that the app does not read is 504', async () => {
  app = (request) => void request.resume();
  const stalled = await world.begin('/', {
    method: 'POST',
    headers: { cookie: await world.cookie(), 'content-length': 10 },
  });
  stalled.request.on('error', () => undefined);
  stalled.request.write('some');
  const late = await readAll(await stalled.answer);
  assert.deepEqual([late.status, codeOf(late.text)], [408, 'preview_upload_stalled']);

  app = (request) => void request.pause();
  const held = await brief.begin('/', {
    method: 'POST',
    headers: { cookie: await brief.cookie(), 'content-length': 64 * 1_048_576 },
  });
  held.request.on('error', () => undefined);
  held.request.write(Buffer.alloc(64 * 1_048_576));
  const answer = await held.answer;
  assert.equal(answer.statusCode, 504);
  held.request.destroy();
});

test('a slow upload is proxied however long it takes', async () => {
  app = (request, response) => {
    response.writeHead(200).flushHeaders();
    request.pipe(response);
  };
  const { request, answer } = await world.begin('/', {
    method: 'POST',
    headers: { cookie: await world.cookie(), 'transfer-encoding': 'chunked' },
  });
  request.flushHeaders();
  const response = await answer;
  const beganAt = performance.now();
  let parts = 0;
  while (performance.now() - beganAt < 1_500) {
    request.write('x');
    await once(response, 'data');
    parts += 1;
    await delay(50);
  }
  request.end();
  response.resume();
  await once(response, 'end');
  assert.ok(parts > 1);
});

test('a silent response of known length is aborted; a stream may be silent for longer', async () => {
  app = (_request, response) => void response.writeHead(200, { 'content-length': 100 }).write('part');
  await assert.rejects(world.visit('/'), /aborted|ECONNRESET/);

  let after = 0;
  app = (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
    setTimeout(() => {
      after += 1;
      response.end('data: 2\n\n');
    }, 500);
  };
  assert.equal((await world.visit('/')).text, 'data: 1\n\ndata: 2\n\n');
  assert.equal(after, 1);

  app = (_request, response) =>
    void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
  await assert.rejects(world.visit('/'), /aborted|ECONNRESET/);
});

test('a WebSocket that is silent both ways for too long is closed', async () => {
  const socket = await world.webSocket('/');
  const sandboxEnd = world.opened.at(-1)?.socket;
  await once(socket, 'close');
  await untilTrue('the sandbox’s end is closed', () => sandboxEnd?.destroyed === true);
});

test('connections beyond the limit of a sandbox are 429; idle ones make room', async () => {
  const responses: ServerResponse[] = [];
  app = (_request, response) => void responses.push(response);
  const answers = [1, 2, 3, 4].map(() => world.visit('/'));
  await untilTrue('all are with the app', () => responses.length === 4);
  const fifth = await world.visit('/');
  assert.deepEqual(
    [fifth.status, codeOf(fifth.text), fifth.headers['retry-after']],
    [429, 'too_many_connections', '3'],
  );
  responses.forEach((response) => response.end('app'));
  for (const answer of answers) assert.equal((await answer).status, 200);

  // Four connections are kept for port 3000; another port takes one of them.
  app = (_request, response) => void response.end('app');
  await world.serve(
    3002,
    createServer((_request, response) => void response.end('other')),
  );
  const { host, token } = await world.link(3002);
  assert.equal((await world.ask(`/?token=${token}`, { host })).text, 'other');
  assert.equal((await world.visit('/')).text, 'app');
});

test('a request to a waking sandbox waits and gets the app’s response', async () => {
  const { api, sandboxId } = world;
  const become = (status: 'waking' | 'ready'): Promise<unknown> =>
    api.db.transaction().execute(async (trx) => {
      await trx.updateTable('sandbox').set({ status }).where('id', '=', sandboxId).execute();
      await sql`select pg_notify(${CHANGES_CHANNEL}, ${sandboxId})`.execute(trx);
    });
  await become('waking');
  // Waits until no earlier decision is cached.
  await untilTrue('a visit waits', async () => {
    const early = await Promise.race([world.visit('/').then(({ status }) => status), delay(200, 'waits' as const)]);
    return early === 'waits';
  });
  const visiting = world.visit('/');
  await become('ready');
  assert.equal((await visiting).text, 'app');
});

test('stopping refuses new requests, ends streams and WebSockets, and completes responses', async () => {
  const held: ServerResponse[] = [];
  const stopping = await startPreview((request, response) => {
    if (request.url === '/events')
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
    else if (request.url === '/whole') held.push(response.writeHead(200, { 'content-length': 8 }));
    else response.end();
  });
  const cookie = await stopping.cookie();
  const socket = await stopping.webSocket('/', { headers: { cookie } });
  const streaming = await stopping.begin('/events', { headers: { cookie } });
  streaming.request.end();
  const events = await streaming.answer;
  events.resume();
  const broken = new Promise((resolve) => events.once('error', resolve));
  const whole = await stopping.begin('/whole', { headers: { cookie } });
  whole.request.end();
  await untilTrue('the app has it', () => held.length === 1);
  held[0]?.write('half');
  const answer = await whole.answer;

  const closed = stopping.api.app.close();
  await Promise.all([once(socket, 'close'), broken]);
  held[0]?.end('half');
  assert.equal((await readAll(answer)).text, 'halfhalf');
  await closed;
  await stopping.close();
});
