// Ambiguous requests sent as raw bytes, and apps with invalid responses.
import assert from 'node:assert/strict';
import http from 'node:http';
import type { Socket } from 'node:net';
import { after, before, beforeEach, test } from 'node:test';
import { errorEnvelope } from '@berth/contract/route/errors.ts';
import { bareServer, startPreview, type PreviewWorld } from './world.ts';

let world: PreviewWorld;
let seen: string[];
before(async () => {
  seen = [];
  world = await startPreview((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      seen.push(`${request.method} ${request.url} ${Buffer.concat(chunks).toString()}`);
      response.end('app');
    });
  });
  await world.cookie();
});
after(() => world.close());
beforeEach(() => {
  seen = [];
});

const head = async (lines: string[], first = 'POST /a HTTP/1.1'): Promise<string> =>
  [first, `host: ${world.host}`, `cookie: ${await world.cookie()}`, ...lines, '', ''].join('\r\n');

test('ambiguous framing is refused before the app receives the request', async () => {
  const smuggled = 'GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n';
  const requests: [string, string][] = [
    ['a length and chunks', (await head(['content-length: 4', 'transfer-encoding: chunked'])) + `0\r\n\r\n${smuggled}`],
    ['chunks and a length', (await head(['transfer-encoding: chunked', 'content-length: 4'])) + `0\r\n\r\n${smuggled}`],
    ['two lengths', (await head(['content-length: 4', 'content-length: 0'])) + `abcd${smuggled}`],
    ['a list of lengths', (await head(['content-length: 4, 4'])) + `abcd${smuggled}`],
    ['a length with a sign', (await head(['content-length: +4'])) + 'abcd'],
    ['a length in hexadecimal', (await head(['content-length: 0x4'])) + 'abcd'],
    ['a coding that is not chunked', (await head(['transfer-encoding: xchunked'])) + `0\r\n\r\n${smuggled}`],
    ['a coding before chunked', (await head(['transfer-encoding: gzip, chunked'])) + '0\r\n\r\n'],
    [
      'chunked twice',
      (await head(['transfer-encoding: chunked', 'transfer-encoding: chunked'])) + `0\r\n\r\n${smuggled}`,
    ],
    [
      'chunked and identity',
      (await head(['transfer-encoding: chunked', 'transfer-encoding: identity'])) + `0\r\n\r\n${smuggled}`,
    ],
    ['a folded header', (await head(['x-a: b\r\n transfer-encoding: chunked'])) + smuggled],
    ['a space before the colon', (await head(['content-length : 4'])) + 'abcd'],
    ['a bare LF', (await head(['x-a: b\nx-c: d'])) + smuggled],
    ['a bare CR', (await head(['x-a: b\rtransfer-encoding: chunked'])) + smuggled],
    ['NUL in a header', (await head(['x-a: b\0c'])) + smuggled],
    ['a chunk without its length', (await head(['transfer-encoding: chunked'])) + `zz\r\nabc\r\n0\r\n\r\n${smuggled}`],
    [
      'a chunk that is longer than it says',
      (await head(['transfer-encoding: chunked'])) + `1\r\nabc\r\n0\r\n\r\n${smuggled}`,
    ],
    ['a chunk length with a bare LF', (await head(['transfer-encoding: chunked'])) + `1\na\n0\r\n\r\n${smuggled}`],
  ];
  for (const [what, bytes] of requests) {
    const answer = await world.raw(bytes, { end: true });
    assert.match(answer, /^HTTP\/1\.1 (400|501) /, `${what}: ${answer}`);
    assert.equal(answer.match(/HTTP\/1\.1 /g)?.length, 1, `${what}: ${answer}`);
    assert.deepEqual(seen, [], what);
  }
});

test('a body of GET, HEAD, DELETE or OPTIONS never becomes a separate request', async () => {
  const smuggled = 'GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n';
  for (const method of ['GET', 'HEAD', 'DELETE', 'OPTIONS']) {
    for (const connection of ['close', 'close, content-length', 'close, transfer-encoding', 'close, host']) {
      const long =
        (await head([`connection: ${connection}`, `content-length: ${smuggled.length}`], `${method} /a HTTP/1.1`)) +
        smuggled;
      const chunked =
        (await head([`connection: ${connection}`, 'transfer-encoding: chunked'], `${method} /a HTTP/1.1`)) +
        `${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`;
      for (const bytes of [long, chunked]) {
        seen = [];
        assert.match(await world.raw(bytes), /^HTTP\/1\.1 200 /);
        assert.deepEqual(seen, [`${method} /a ${smuggled}`]);
      }
    }
  }
});

test('pipelined requests get their responses in order', async () => {
  const cookie = await world.cookie();
  const one = `GET /1 HTTP/1.1\r\nhost: ${world.host}\r\ncookie: ${cookie}\r\n\r\n`;
  const other = `GET /health HTTP/1.1\r\nhost: berth.example.test\r\n\r\n`;
  const last = `GET /3 HTTP/1.1\r\nhost: ${world.host}\r\ncookie: ${cookie}\r\nconnection: close\r\n\r\n`;
  const answer = await world.raw(one + other + last);
  assert.deepEqual(answer.match(/(?<=\r\n\r\n)(app|\{"ok":true)/g), ['app', '{"ok":true', 'app'], answer);
  assert.deepEqual(seen, ['GET /1 ', 'GET /3 ']);
});

test('a second Host, or a target that names another host, is refused', async () => {
  const cookie = await world.cookie();
  const ask = (first: string, hosts: string[]): Promise<string> =>
    world.raw(
      [first, ...hosts.map((host) => `host: ${host}`), `cookie: ${cookie}`, 'connection: close', '', ''].join('\r\n'),
    );
  for (const [what, status, answer] of [
    ['two hosts', 400, ask('GET / HTTP/1.1', [world.host, 'berth.example.test'])],
    ['two hosts, the service’s first', 400, ask('GET /health HTTP/1.1', ['berth.example.test', world.host])],
    ['the same host twice', 400, ask('GET / HTTP/1.1', [world.host, world.host])],
    ['a target that says another', 400, ask('GET http://berth.example.test/health HTTP/1.1', [world.host])],
    ['a target that says the preview', 400, ask(`GET http://${world.host}/ HTTP/1.1`, ['berth.example.test'])],
    ['a target with a user', 400, ask(`GET http://a@${world.host}/ HTTP/1.1`, [world.host])],
    ['no host', 400, ask('GET / HTTP/1.1', [])],
    ['a dot at its end', 404, ask('GET / HTTP/1.1', [`${world.host}.`])],
    ['a port with zeros', 404, ask('GET / HTTP/1.1', [world.host.replace('3000-', '03000-')])],
    ['a user', 404, ask('GET / HTTP/1.1', [`a@${world.host}`])],
    ['more below it', 404, ask('GET / HTTP/1.1', [`x.${world.host}`])],
    ['the preview host itself', 404, ask('GET /health HTTP/1.1', ['previews.example.test'])],
  ] as const)
    assert.match(await answer, new RegExp(`^HTTP/1\\.1 ${status} `), what);

  assert.deepEqual(seen, []);
  assert.match(await ask(`GET http://${world.host.toUpperCase()}/a?b HTTP/1.1`, [world.host]), /^HTTP\/1\.1 200 /);
  assert.match(await ask(`GET http://${world.host}?b HTTP/1.1`, [world.host]), /^HTTP\/1\.1 200 /);
  assert.deepEqual(seen, ['GET /a?b ', 'GET /?b ']);
});

test('CONNECT is refused and h2c upgrades are ignored', async () => {
  assert.equal(await world.raw(`CONNECT ${world.host}:80 HTTP/1.1\r\nhost: ${world.host}\r\n\r\n`), '');
  const answer = await world.raw(
    await head(['connection: upgrade, close', 'upgrade: h2c', 'http2-settings: AAMAAABk'], 'GET /h2 HTTP/1.1'),
  );
  assert.match(answer, /^HTTP\/1\.1 200 /);
  assert.deepEqual(seen, ['GET /h2 ']);
});

test('preview hosts serve no path of the service, and its host serves no preview', async () => {
  for (const path of ['/health', '/v1/me', '/sign-in', '/pages.css', '/v1/me/orgs']) {
    const { text, headers } = await world.visit(path, { headers: { authorization: `Bearer ${world.api.token}` } });
    assert.equal(text, 'app', path);
    assert.equal(headers['x-request-id'], undefined);
    const { status } = await world.ask(path);
    assert.equal(status, 401, path);
  }
  seen = [];
  for (const host of [
    'berth.example.test',
    'localhost',
    '127.0.0.1',
    'example.test',
    `${world.host}.evil.test`,
    'evilpreviews.example.test',
  ]) {
    // The service's own `/` leads to its pages.
    const { headers, status } = await world.ask(`/served?token=${world.token}`, {
      host,
      headers: { cookie: await world.cookie() },
    });
    assert.equal(status, 404, host);
    assert.match(String(headers['x-request-id']), /^req_/);
    assert.equal(headers['set-cookie'], undefined);
  }
  assert.deepEqual(seen, []);
});

test('invalid HTTP, an oversized head or no response is 502 and affects no other request', async () => {
  const scripts: [string, number, (socket: Socket) => void][] = [
    ['nothing', 502, (socket) => socket.end()],
    ['a reset', 502, (socket) => socket.resetAndDestroy()],
    ['garbage', 502, (socket) => socket.end('SSH-2.0-OpenSSH_9.9\r\n')],
    ['half a head', 502, (socket) => socket.end('HTTP/1.1 200 OK\r\nx-a: b')],
    ['a giant header', 502, (socket) => socket.end(`HTTP/1.1 200 OK\r\nx-a: ${'b'.repeat(64_000)}\r\n\r\n`)],
    ['endless headers', 502, (socket) => endless(socket, 'HTTP/1.1 200 OK\r\n', 'x-a: b\r\n')],
    ['an endless status line', 502, (socket) => endless(socket, 'HTTP/1.1 200 ', 'OK')],
    [
      'a length and chunks',
      502,
      (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'),
    ],
    [
      'two lengths',
      502,
      (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd'),
    ],
    ['a folded header', 502, (socket) => socket.end('HTTP/1.1 200 OK\r\nx-a: b\r\n c: d\r\ncontent-length: 0\r\n\r\n')],
    [
      'a header with a bare CR',
      502,
      (socket) => socket.end('HTTP/1.1 200 OK\r\nx-a: b\rset-cookie: c=d\r\ncontent-length: 0\r\n\r\n'),
    ],
    ['a status below all', 502, (socket) => socket.end('HTTP/1.1 099 Low\r\ncontent-length: 0\r\n\r\n')],
    ['a status of zero', 502, (socket) => socket.end('HTTP/1.1 000 None\r\ncontent-length: 0\r\n\r\n')],
    [
      'another protocol, unasked',
      502,
      (socket) =>
        socket.end('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nabc'),
    ],
    ['a 101 without a word', 502, (socket) => socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n')],
    ['a reason that is no text', 200, (socket) => socket.end('HTTP/1.1 200 \x01\x7f\r\ncontent-length: 3\r\n\r\napp')],
    [
      'a reason in another alphabet',
      200,
      (socket) => socket.end(Buffer.from('HTTP/1.1 200 grün\r\ncontent-length: 3\r\n\r\napp')),
    ],
    ['a status above all', 999, (socket) => socket.end('HTTP/1.1 999 High\r\ncontent-length: 3\r\n\r\napp')],
    [
      'many interim answers',
      200,
      (socket) =>
        socket.end(
          `${'HTTP/1.1 103 Early\r\nlink: x\r\n\r\n'.repeat(50)}HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\napp`,
        ),
    ],
    ['no reason', 200, (socket) => socket.end('HTTP/1.1 200 \r\ncontent-length: 3\r\n\r\napp')],
    ...['文.pdf', '\u00e9.pdf'].map((name): (typeof scripts)[number] => [
      'a file name of bytes that are no Latin',
      200,
      (socket) =>
        socket.end(
          `HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-disposition: attachment; filename="${name}"\r\n\r\napp`,
        ),
    ]),
    ['HTTP/1.0', 200, (socket) => socket.end('HTTP/1.0 200 OK\r\n\r\napp')],
    [
      'two answers',
      200,
      (socket) =>
        socket.write(
          'HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nappHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong',
        ),
    ],
  ];
  let script = scripts[0]?.[2];
  await world.serve(
    3001,
    bareServer((socket) => void socket.once('data', () => script?.(socket))),
  );
  const { host, token } = await world.link(3001);
  for (const [what, status, run] of scripts) {
    script = run;
    // Twice: the first must leave nothing for the second.
    for (const _time of [1, 2]) {
      const answer = await world.ask(`/?token=${token}`, { host });
      assert.equal(answer.status, status, `${what}: ${answer.text}`);
      if (status === 502)
        assert.equal(errorEnvelope.parse(JSON.parse(answer.text)).error.code, 'preview_answer_broken', what);
      else assert.equal(answer.text, 'app', what);
    }
  }
  assert.equal((await world.visit('/still')).text, 'app');
});

test('an early response is proxied and the unread upload does not hold the client', async () => {
  await world.serve(
    3002,
    http.createServer((_request, response) => void response.writeHead(413, { connection: 'close' }).end('too much')),
  );
  const { host, token } = await world.link(3002);
  const { request, answer } = await world.begin(`/?token=${token}`, {
    method: 'POST',
    host,
    headers: { 'content-length': 1_000_000 },
  });
  request.on('error', () => undefined);
  request.write('some');
  const { statusCode } = await answer;
  assert.equal(statusCode, 413);
  await new Promise((resolve) => request.once('close', resolve));
});

function endless(socket: Socket, first: string, more: string): void {
  socket.write(first);
  const part = more.repeat(1_000);
  const write = (): void => {
    if (!socket.destroyed) socket.write(part, () => setImmediate(write));
  };
  write();
}
