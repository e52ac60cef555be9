// Clients refused while sending receive the response: for a while the connection closes gracefully
// instead of with a reset.
import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { untilTrue } from '../../../os/test/until.ts';
import { bareServer, startPreview, type PreviewWorld } from './world.ts';

const BODY = Buffer.alloc(4_000_000, 120);
const PIECE_BYTES = 50_000;

let world: PreviewWorld;
let app = (_request: IncomingMessage, response: ServerResponse): unknown => response.end('app');
before(async () => {
  world = await startPreview((request, response) => app(request, response));
  await world.cookie();
});
after(() => world.close());

/**
 * Sends the head, waits for the service's half-close, then sends the body without reading: data
 * lost to a reset cannot be read. Returns the bytes read and whether the connection was reset.
 */
async function sendThenRead(head: string, body = BODY): Promise<{ text: string; reset: boolean }> {
  const socket = connect({ port: world.port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
  const chunks: Buffer[] = [];
  let reset = false;
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.on('error', () => (reset = true));
  const ended = new Promise<void>((resolve) => socket.once('end', resolve));
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.write(head);
  await Promise.race([ended, closed]);
  for (let at = 0; at < body.byteLength && !socket.destroyed; at += PIECE_BYTES)
    await new Promise<void>((resolve) => socket.write(body.subarray(at, at + PIECE_BYTES), () => resolve()));

  socket.end();
  await closed;
  return { text: Buffer.concat(chunks).toString('latin1'), reset };
}

interface Case {
  name: string;
  first?: string;
  lines?: string[];
  host?: string;
  status: RegExp;
}

const LENGTH = `content-length: ${BODY.byteLength}`;
const CASES: readonly Case[] = [
  { name: 'nobody let in', lines: ['connection: close', LENGTH], status: /^HTTP\/1\.1 401 / },
  { name: 'nobody let in, HTTP/1.0', first: 'PUT / HTTP/1.0', lines: [LENGTH], status: /^HTTP\/1\.1 401 / },
  { name: 'nobody let in, who asked first', lines: ['expect: 100-continue', LENGTH], status: /^HTTP\/1\.1 401 / },
  { name: 'no answer of a body with HEAD', first: 'HEAD / HTTP/1.1', lines: [LENGTH], status: /^HTTP\/1\.1 401 / },
  { name: 'a host that is none', host: 'x.', lines: ['connection: close', LENGTH], status: /^HTTP\/1\.1 404 / },
  {
    name: 'a target that cannot be read',
    first: 'PUT /\xe9 HTTP/1.1',
    lines: ['connection: close', LENGTH],
    status: /^HTTP\/1\.1 400 /,
  },
  { name: 'a head that is too long', lines: [`x-long: ${'a'.repeat(17_000)}`, LENGTH], status: /^HTTP\/1\.1 431 / },
  {
    name: 'a handshake that is refused',
    first: 'GET / HTTP/1.1',
    lines: [
      'connection: Upgrade',
      'upgrade: websocket',
      'sec-websocket-version: 13',
      'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==',
    ],
    status: /^HTTP\/1\.1 401 /,
  },
];

const headOf = (host: string, { first = 'PUT / HTTP/1.1', lines = [] }: Pick<Case, 'first' | 'lines'>): string =>
  [first, `host: ${host}`, ...lines, '', ''].join('\r\n');

async function refused(host: string, one: Case): Promise<void> {
  const { text, reset } = await sendThenRead(headOf(host, one));
  assert.match(text, one.status, one.name);
  assert.match(text, /\r\n\r\n/, one.name);
  assert.equal(reset, false, `${one.name}: the connection was reset`);
}

test('a refused client may finish sending without a connection reset', async () => {
  for (const one of CASES) await refused(`${one.host ?? ''}${world.host}`, one);
});

test('so may a client of a closed port, or of an app that has responded already', async () => {
  const silent = await world.link(4000);
  const asked = { lines: ['connection: close', LENGTH], first: `PUT /?token=${silent.token} HTTP/1.1` };
  await refused(silent.host, { ...asked, name: 'nothing listens', status: /^HTTP\/1\.1 502 / });
  const lines = ['connection: close', `cookie: ${await world.cookie()}`, LENGTH];
  await refused(world.host, { name: 'an early answer', lines, status: /^HTTP\/1\.1 200 / });
});

test('so may a client of an app that stops reading and dies', async () => {
  const apps: Socket[] = [];
  await world.serve(
    4001,
    bareServer((app) => void apps.push(app.pause())),
  );
  const held = await world.link(4001);
  const socket = connect({ port: world.port, host: '127.0.0.1', allowHalfOpen: true });
  const body = Buffer.alloc(20_000_000, 120);
  const head = headOf(held.host, {
    first: `PUT /?token=${held.token} HTTP/1.1`,
    lines: ['connection: close', `content-length: ${body.byteLength}`],
  });
  let reset = false;
  socket.on('error', () => (reset = true));
  const uploads: IncomingMessage[] = [];
  const note = (message: unknown): void => {
    const { request } = message as { request: IncomingMessage };
    if (request.headers.host === held.host) uploads.push(request);
  };
  subscribe('http.server.request.start', note);
  socket.write(head);
  // Nothing is read before all of it is sent.
  const sent = new Promise<void>((resolve) => socket.write(body, () => resolve()));
  await untilTrue(
    'the upload is held back',
    () =>
      apps.length > 0 &&
      uploads.some((upload) => upload.isPaused() && upload.readableLength >= upload.readableHighWaterMark),
  );
  unsubscribe('http.server.request.start', note);
  for (const app of apps) app.destroy();
  await sent;
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.end();
  await new Promise((resolve) => socket.once('close', resolve));
  assert.match(Buffer.concat(chunks).toString('latin1'), /^HTTP\/1\.1 502 /);
  assert.equal(reset, false, 'the connection was reset');
});

test('so may a client that the service refuses', async () => {
  const path = `PUT /v1/sandboxes/${world.sandboxId}/file?path=a`;
  for (const [name, first, lines, status] of [
    ['no key', `${path} HTTP/1.1`, ['connection: close', LENGTH], /^HTTP\/1\.1 401 /],
    ['no key, HTTP/1.0', `${path} HTTP/1.0`, [LENGTH], /^HTTP\/1\.1 401 /],
    ['no path', 'POST /none HTTP/1.1', ['connection: close', LENGTH], /^HTTP\/1\.1 404 /],
    ['a target that cannot be read', 'POST /\xe9 HTTP/1.1', [LENGTH], /^HTTP\/1\.1 400 /],
  ] as const)
    await refused('127.0.0.1', { name, first, lines: [...lines], status });
});

test('bytes after the last response of a connection are not parsed as a request', async () => {
  let visits = 0;
  app = (_request, response) => {
    visits += 1;
    response.end('early');
  };
  const cookie = `cookie: ${await world.cookie()}`;
  const first = headOf(world.host, { lines: ['connection: close', cookie, 'content-length: 5'] });
  const behind = `12345${headOf(world.host, { first: 'GET / HTTP/1.1', lines: [cookie] })}`;
  const { text } = await sendThenRead(first, Buffer.from(behind));
  assert.equal(text.match(/HTTP\/1\.1 /g)?.length, 1, text);
  assert.equal(visits, 1);
});
