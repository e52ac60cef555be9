// Responses around each other on one connection: pipelined requests, Expect, early refusals, and
// bytes that are not UTF-8.
import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { after, before, beforeEach, test } from 'node:test';
import { errorEnvelope } from '@berth/contract/route/errors.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { startPreview, type PreviewWorld } from './world.ts';

let world: PreviewWorld;
let app: (request: IncomingMessage, response: ServerResponse) => void;
before(async () => {
  app = (_request, response) => response.end('app');
  world = await startPreview((request, response) => app(request, response));
  await world.cookie();
});
after(() => world.close());
beforeEach(() => {
  app = (_request, response) => response.end('app');
});

const head = async (lines: string[], first = 'GET /a HTTP/1.1'): Promise<string> =>
  [first, `host: ${world.host}`, `cookie: ${await world.cookie()}`, ...lines, '', ''].join('\r\n');

test('an error for malformed bytes never replaces or splits the response before it', async () => {
  const held = Promise.withResolvers<void>();
  app = (request, response) => {
    if (request.url === '/begun') response.writeHead(200, { 'content-length': 6 }).write('app');
    void held.promise.then(() => response.end('app'));
  };
  for (const path of ['/held', '/begun']) {
    const answer = await world.raw(`${await head([], `GET ${path} HTTP/1.1`)}no HTTP\r\n\r\n`);
    assert.doesNotMatch(answer, /invalid_request/, path);
  }
  held.resolve();
});

test('a pipelined response that the app aborts is aborted in its turn', { timeout: 60_000 }, async () => {
  const held = Promise.withResolvers<void>();
  app = (request, response) => {
    if (request.url === '/held') void held.promise.then(() => response.end('first'));
    else response.writeHead(200, { 'content-length': 10 }).write('half', () => response.socket?.destroy());
  };
  const answered = world.raw(
    (await head([], 'GET /held HTTP/1.1')) + (await head([], 'GET /broken HTTP/1.1')) + (await head([])),
  );
  await untilTrue('the second is known to be broken', () =>
    world.api.logged().includes('"code":"preview_answer_broken"'),
  );
  held.resolve();
  assert.match(await answered, /\r\n\r\nfirst/);
});

test('a pipelined Expect gets no 100 Continue inside the response before it', async () => {
  app = (_request, response) => void response.end(Buffer.from('the answer'));
  const asks = await head(['expect: 100-continue', 'content-length: 0', 'connection: close']);
  const answer = await world.raw((await head([])) + asks);
  const bodies = answer.split('\r\n\r\n').slice(1);
  assert.ok(bodies[0]?.startsWith('the answerHTTP/1.1 '), answer);
  assert.equal(bodies.at(-1), 'the answer', answer);
  assert.doesNotMatch(answer.slice(answer.lastIndexOf('HTTP/1.1 200')), /100 Continue/);
});

test('a request with Expect keeps its target byte for byte', async () => {
  app = (request, response) => response.end(request.url);
  const answer = await world.raw(
    (await head(['expect: 100-continue', 'content-length: 1', 'connection: close'], 'PUT /a/../b? HTTP/1.1')) + 'x',
  );
  assert.match(answer, /\r\n\r\n\/a\/\.\.\/b\?$/);
});

test('header bytes that are not UTF-8 arrive unchanged, both ways, before a slow body', async () => {
  let given: string | undefined;
  app = (request, response) => {
    given = request.headers['x-odd'] as string;
    request.resume();
    response.writeHead(200, { 'x-odd': '\xe9\xff' });
    // Sends the head. flushHeaders() would encode it as UTF-8.
    response.write('', 'latin1');
    request.once('end', () => response.end('app'));
  };
  const { request, answer } = await world.begin('/', {
    method: 'PUT',
    headers: { cookie: await world.cookie(), 'content-length': 1, 'x-odd': '\xe9\xff' },
  });
  request.write('', 'latin1');
  const got = await answer;
  request.end('x');
  assert.equal(got.headers['x-odd'], '\xe9\xff');
  assert.equal(given, '\xe9\xff');
  got.resume();
});

test('a client that sends without waiting for 100 Continue receives the refusal', async () => {
  const body = Buffer.alloc(1_000_000, 120);
  for (const method of ['PUT', 'HEAD']) {
    const text = [
      `${method} / HTTP/1.1`,
      `host: ${world.host}`,
      'expect: 100-continue',
      `content-length: ${body.byteLength}`,
      '',
      '',
    ].join('\r\n');
    assert.match(await world.raw(Buffer.concat([Buffer.from(text), body])), /^HTTP\/1\.1 401 /, method);
  }
});

test('a handshake to a malformed preview host is refused like any other request', async () => {
  for (const [hosts, code] of [
    [[`x.${world.host}`], 'preview_not_found'],
    [[world.host, world.host], 'invalid_request'],
  ] as const) {
    const lines = [
      'GET / HTTP/1.1',
      ...hosts.map((host) => `host: ${host}`),
      'connection: upgrade',
      'upgrade: websocket',
      '',
      '',
    ];
    const answer = await world.raw(lines.join('\r\n'));
    const body = answer.slice(answer.indexOf('\r\n\r\n') + 4);
    assert.equal(errorEnvelope.parse(JSON.parse(body)).error.code, code);
    assert.match(answer, /\r\nx-request-id: req_/);
  }
});
