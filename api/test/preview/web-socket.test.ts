// WebSockets through previews: all frames both ways, closing, and apps that refuse the handshake.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import { connect, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import type { RawData, WebSocket } from 'ws';
import { untilTrue } from '../../../os/test/until.ts';
import { bareServer, startPreview, type PreviewWorld } from './world.ts';

let world: PreviewWorld;
let handshakes: http.IncomingMessage[];
before(async () => {
  handshakes = [];
  world = await startPreview(
    (_request, response) =>
      void response.writeHead(404, { 'x-app': 'yes', 'set-cookie': 'a=1; Domain=example.test' }).end('no page'),
    {
      onWebSocket: (socket, request) => {
        handshakes.push(request);
        if (request.url === '/close') socket.close(4321, 'enough');
        if (request.url === '/cut') socket.terminate();
        socket.on('message', (data: Buffer, isBinary) => socket.send(data, { binary: isBinary }));
      },
    },
  );
  await world.cookie();
});
after(() => world.close());

async function message(socket: WebSocket): Promise<{ data: Buffer; isBinary: boolean }> {
  const [data, isBinary] = (await once(socket, 'message')) as [RawData, boolean];
  return { data: data as Buffer, isBinary };
}

test('text and binary frames of all lengths pass both ways; the handshake is filtered', async () => {
  const socket = await world.webSocket('/chat?a=1&b', {
    protocols: ['v1.app', 'v2.app'],
    headers: { origin: `http://${world.host}`, 'x-berth-thing': 'no', 'x-forwarded-for': '6.6.6.6' },
  });
  assert.equal(socket.protocol, 'v2.app');
  const { url, headers } = handshakes.at(-1) ?? {};
  assert.equal(url, '/chat?a=1&b');
  const { 'sec-websocket-key': key, ...rest } = headers ?? {};
  assert.ok(key !== undefined);
  assert.deepEqual(rest, {
    host: 'localhost:3000',
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-protocol': 'v1.app,v2.app',
    origin: 'http://localhost:3000',
    'x-forwarded-for': '127.0.0.1',
    'x-berth-forwarded-host': world.host,
    'x-berth-forwarded-proto': 'http',
  });

  socket.send('grüße');
  assert.deepEqual(await message(socket), { data: Buffer.from('grüße'), isBinary: false });
  const bytes = randomBytes(16 * 1_048_576);
  socket.send(bytes);
  const back = await message(socket);
  assert.ok(back.isBinary);
  assert.equal(createHash('sha256').update(back.data).digest('hex'), createHash('sha256').update(bytes).digest('hex'));
  socket.ping('there?');
  const [pong] = (await once(socket, 'pong')) as [Buffer];
  assert.equal(pong.toString(), 'there?');
  socket.close(4000, 'done');
  const [code, reason] = (await once(socket, 'close')) as [number, Buffer];
  assert.deepEqual([code, reason.toString()], [4000, 'done']);
  await untilTrue('nothing is left open into the sandbox', () =>
    world.opened.every(({ socket: end }) => end.destroyed),
  );
});

test('a token in the URL opens a WebSocket and is hidden from the app', async () => {
  const socket = await world.webSocket(`/x?token=${world.token}&a=1`, { headers: { cookie: 'other=1' } });
  assert.equal(handshakes.at(-1)?.url, '/x?a=1');
  assert.equal(handshakes.at(-1)?.headers.cookie, 'other=1');
  socket.terminate();
});

test('a close code of the app arrives; an abrupt end is reported as abnormal', async () => {
  const closed = await world.webSocket('/close');
  const [code, reason] = (await once(closed, 'close')) as [number, Buffer];
  assert.deepEqual([code, reason.toString()], [4321, 'enough']);
  const cut = await world.openWebSocket('/cut');
  const [cutCode] = (await once(cut, 'close')) as [number];
  assert.equal(cutCode, 1006);
});

test('an aborted client closes the connection to the app', async () => {
  const socket = await world.webSocket('/');
  const last = world.opened.at(-1)?.socket;
  socket.terminate();
  await untilTrue('the sandbox’s end is closed', () => last?.destroyed === true);
});

test('a page in response to a handshake is proxied', async () => {
  // The default server upgrades every request; this one knows no upgrades.
  await world.serve(
    3001,
    http.createServer(
      (_request, response) =>
        void response.writeHead(404, { 'x-app': 'yes', 'set-cookie': 'a=1; Domain=example.test' }).end('no page'),
    ),
  );
  const { host, token } = await world.link(3001);
  const answer = await handshake(host, `/?token=${token}`);
  assert.match(answer, /^HTTP\/1\.1 404 Not Found\r\n/);
  assert.match(answer, /\r\nx-app: yes\r\n/);
  assert.match(answer, /\r\nset-cookie: a=1\r\n/);
  assert.match(answer, /\r\nconnection: close\r\n/i);
  assert.match(answer, /no page/);
});

test('a refused handshake gets its status and does not reach the app', async () => {
  const before = handshakes.length;
  const cookie = await world.cookie();
  for (const [what, status, asked] of [
    ['no link', 401, handshake(world.host, '/')],
    ['a wrong link', 403, handshake(world.host, '/?token=bpt_wrong')],
    ['a host that is none', 404, handshake('x.previews.example.test', '/')],
    ['a body', 400, handshake(world.host, '/', `cookie: ${cookie}\r\ncontent-length: 5\r\n`, 'GET /')],
    [
      'a body in chunks',
      400,
      handshake(world.host, '/', `cookie: ${cookie}\r\ntransfer-encoding: chunked\r\n`, '0\r\n\r\n'),
    ],
    ['two hosts', 400, handshake(world.host, '/', `cookie: ${cookie}\r\nhost: ${world.host}\r\n`)],
    [
      'a port on which nothing listens',
      502,
      handshake((await world.link(3999)).host, `/?token=${(await world.link(3999)).token}`),
    ],
  ] as const)
    assert.match(await asked, new RegExp(`^HTTP/1\\.1 ${status} [^]*connection: close`, 'i'), what);

  assert.equal(handshakes.length, before);
});

test('an app that switches to another protocol, or aborts, opens no WebSocket', async () => {
  const scripts: Record<number, string | null> = {
    3010: 'HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: h2c\r\n\r\nPRI',
    3011: null,
    3012: 'garbage\r\n\r\n',
    3013: 'HTTP/1.1 101 Switching Protocols\r\n\r\n',
  };
  for (const [port, script] of Object.entries(scripts)) {
    await world.serve(
      Number(port),
      bareServer(
        (socket: Socket) => void socket.once('data', () => (script === null ? socket.destroy() : socket.end(script))),
      ),
    );
    const { host, token } = await world.link(Number(port));
    const answer = await handshake(host, `/?token=${token}`);
    assert.ok(answer === '' || answer.startsWith('HTTP/1.1 502 '), `${port}: ${answer}`);
    assert.ok(!answer.includes('PRI'));
  }
});

test('a visitor that half-closes a WebSocket leaves, although the app does not end', async () => {
  const appSeesEnd = Promise.withResolvers<void>();
  await world.serve(
    3020,
    bareServer((socket) => {
      socket.once('end', () => appSeesEnd.resolve());
      socket.once('data', () =>
        socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\nhello'),
      );
    }),
  );
  const { host, token } = await world.link(3020);
  const visitor = connect({ port: world.port, host: '127.0.0.1', allowHalfOpen: true });
  visitor.on('error', () => undefined);
  visitor.write(
    `GET /?token=${token} HTTP/1.1\r\nhost: ${host}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n` +
      `sec-websocket-version: 13\r\nsec-websocket-key: ${randomBytes(16).toString('base64')}\r\n\r\n`,
  );
  let said = '';
  visitor.on('data', (chunk: Buffer) => (said += chunk.toString('latin1')));
  await untilTrue('the app says hello', () => said.endsWith('hello'));
  visitor.end();
  await Promise.all([once(visitor, 'close'), appSeesEnd.promise]);
});

/** Sends a raw handshake; returns all bytes until the connection closes. */
async function handshake(host: string, path: string, more = '', behind = ''): Promise<string> {
  return await world.raw(
    `GET ${path} HTTP/1.1\r\nhost: ${host}\r\n` +
      'connection: Upgrade\r\nupgrade: websocket\r\n' +
      `sec-websocket-version: 13\r\nsec-websocket-key: ${randomBytes(16).toString('base64')}\r\n` +
      `${more}\r\n${behind}`,
  );
}
