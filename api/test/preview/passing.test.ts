// Proxying between client and app: requests and responses of every form, back-pressure, and
// filtered headers.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import { after, before, beforeEach, test } from 'node:test';
import { untilTrue } from '../../../os/test/until.ts';
import { bareServer, readAll, startPreview, type PreviewWorld } from './world.ts';

type App = (request: IncomingMessage, response: ServerResponse) => void;
const HELLO: App = (_request, response) => void response.end('hello');

let world: PreviewWorld;
let app: App;
let seen: {
  method: string | undefined;
  url: string | undefined;
  headers: http.IncomingHttpHeaders;
  rawHeaders: string[];
}[];
before(async () => {
  app = HELLO;
  seen = [];
  world = await startPreview((request, response) => {
    const { method, url, headers, rawHeaders } = request;
    seen.push({ method, url, headers, rawHeaders });
    app(request, response);
  });
  await world.cookie();
});
after(() => world.close());
beforeEach(() => {
  app = HELLO;
  seen = [];
});

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

test('a request reaches the app unchanged, except for Berth’s headers and tokens', async () => {
  const path = '/a//b/../c%2F%zz/;x=1?q=a+b&token=app&c=%26&token=&empty?';
  const { status, text, headers } = await world.visit(path, {
    headers: {
      'X-App': 'yes',
      authorization: 'Basic abc',
      cookie: `one=1; ${await world.cookie()}; two=2`,
      'x-berth-secret': 'no',
      'x-forwarded-for': '6.6.6.6',
      'X-Forwarded-Host': 'evil.test',
      'x-forwarded-prefix': '/evil',
      forwarded: 'for=6.6.6.6',
      'x-real-ip': '6.6.6.6',
      connection: 'close, x-hop',
      'x-hop': 'no',
      'proxy-authorization': 'Basic no',
      te: 'trailers, deflate',
      referer: `http://${world.host}/start?a=1&token=${world.token}`,
    },
  });
  assert.equal(status, 200);
  assert.equal(text, 'hello');
  assert.equal(headers['x-request-id'], undefined);
  assert.equal(seen[0]?.url, path);
  const { host, ...rest } = seen[0]?.headers ?? {};
  assert.equal(host, 'localhost:3000');
  assert.deepEqual(rest, {
    'x-app': 'yes',
    authorization: 'Basic abc',
    cookie: 'one=1; two=2',
    te: 'trailers',
    referer: 'http://localhost:3000/start?a=1',
    'x-forwarded-for': '127.0.0.1',
    'x-berth-forwarded-host': world.host,
    'x-berth-forwarded-proto': 'http',
    connection: 'keep-alive',
  });
});

test('a target is proxied byte for byte', async () => {
  for (const target of [
    '/',
    '//',
    '/x?',
    '/x??',
    '//host/path',
    '/?',
    '/a/./../b',
    '/%2e%2e/%00',
    '/?a=b?c&d',
    "/'|^`{}",
  ]) {
    assert.equal((await world.visit(target)).text, 'hello');
    assert.equal(seen.at(-1)?.url, target);
  }
});

test('the token is moved from the URL to a cookie; the rest of the query is unchanged', async () => {
  const { headers, status } = await world.ask(`/x?a=%20&token=${world.token}&b&token=mine&token=bpt_other`);
  assert.equal(status, 200);
  assert.equal(seen[0]?.url, '/x?a=%20&b&token=mine');
  assert.equal(seen[0]?.headers.cookie, undefined);
  assert.equal(headers['set-cookie']?.length, 1);
  assert.match(headers['set-cookie']?.[0] ?? '', /^berth_preview=[^;]+;.*HttpOnly/i);
  assert.equal(headers['cache-control'], 'no-store');
});

test('a response reaches the client unchanged, except for hop-by-hop headers and Berth’s', async () => {
  app = (_request, response) => {
    response.writeHead(
      418,
      'Short and stout',
      [
        ['X-App', 'yes'],
        ['X-Twice', '1'],
        ['X-Twice', '2'],
        ['X-Berth-Thing', 'no'],
        ['Keep-Alive', 'timeout=9'],
        ['Connection', 'x-hop, keep-alive'],
        ['X-Hop', 'no'],
        ['Proxy-Authenticate', 'Basic'],
        ['Set-Cookie', 'a=1; Path=/; HttpOnly'],
        ['Set-Cookie', 'b=2; Domain=previews.example.test; Secure'],
        ['Set-Cookie', 'c=3; DOMAIN = .example.test'],
        ['Set-Cookie', 'berth_preview=stolen; Path=/'],
        ['Set-Cookie', '=berth_preview=stolen'],
        ['Content-Length', '3'],
      ].flat(),
    );
    response.end('tea');
  };
  const { status, headers, text, rawHeaders } = await world.visit('/');
  assert.equal(status, 418);
  assert.equal(text, 'tea');
  assert.deepEqual(headers['set-cookie'], ['a=1; Path=/; HttpOnly', 'b=2; Secure', 'c=3']);
  assert.equal(headers['x-app'], 'yes');
  assert.equal(headers['x-twice'], '1, 2');
  const names = rawHeaders.filter((_text, at) => at % 2 === 0).map((name) => name.toLowerCase());
  assert.deepEqual(
    names.toSorted(),
    [
      ...['connection', 'content-length', 'date', 'set-cookie', 'set-cookie', 'set-cookie', 'x-app', 'x-twice'],
      // Isolation from pages of other origins.
      ...['content-security-policy', 'cross-origin-resource-policy'],
    ].toSorted(),
  );
});

test('bodies of every framing arrive complete, both ways', async () => {
  app = (request, response) =>
    void request.pipe(
      response.writeHead(200, {
        'x-length': request.headers['content-length'] ?? 'none',
        'x-coding': request.headers['transfer-encoding'] ?? 'none',
      }),
    );
  const body = randomBytes(3 * 1_048_576);
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'GET']) {
    const long = await world.visit('/', { method, body, headers: { 'content-length': body.length } });
    assert.equal(sha256(long.body), sha256(body), `${method} with a length`);
    assert.equal(long.headers['x-length'], String(body.length));
    const chunked = await world.visit('/', { method, body, headers: { 'transfer-encoding': 'chunked' } });
    assert.equal(sha256(chunked.body), sha256(body), `${method} in chunks`);
    assert.equal(chunked.headers['x-coding'], 'chunked');
    assert.equal(chunked.headers['x-length'], 'none');
  }
  const empty = await world.visit('/', { method: 'POST', headers: { 'content-length': 0 } });
  assert.equal(empty.headers['x-length'], '0');
});

test('file names in headers arrive byte for byte, both ways', async () => {
  for (const name of [Buffer.from('文.pdf'), Buffer.from('\u00e9.pdf', 'latin1'), Buffer.from('a.pdf')]) {
    const disposition = `attachment; filename="${name.toString('latin1')}"`;
    const asked: string[] = [];
    await world.serve(
      3005,
      bareServer((socket) => {
        socket.on('data', (chunk: Buffer) => {
          asked.push(chunk.toString('latin1'));
          if (!asked.join('').endsWith('body')) return;
          socket.end(
            Buffer.from(
              `HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Disposition: ${disposition}\r\n\r\napp`,
              'latin1',
            ),
          );
        });
      }),
    );
    const { host, token } = await world.link(3005);
    const head = [
      `PUT /?token=${token} HTTP/1.1`,
      `Host: ${host}`,
      'Connection: close',
      'Content-Length: 4',
      `Content-Disposition: ${disposition}`,
    ];
    const answer = await world.raw(Buffer.from(`${head.join('\r\n')}\r\n\r\nbody`, 'latin1'));
    assert.ok(asked.join('').includes(`\r\ncontent-disposition: ${disposition}\r\n`), asked.join(''));
    assert.ok(answer.includes(`\r\ncontent-disposition: ${disposition}\r\n`), answer);
    assert.ok(answer.endsWith('\r\n\r\napp'), answer);
  }
});

test('a response of unknown length to HTTP/1.0 ends with its connection, despite keep-alive', async () => {
  app = (_request, response) => {
    response.write('of ');
    response.end('no length');
  };
  const cookie = await world.cookie();
  const heads = `GET / HTTP/1.0\r\nHost: ${world.host}\r\nCookie: ${cookie}\r\nConnection: keep-alive\r\n\r\n`;
  const [head = '', body] = (await world.raw(heads)).split('\r\n\r\n');
  assert.match(head, /^HTTP\/1\.1 200 OK\r\n/);
  assert.match(head, /\r\nconnection: close(\r\n|$)/i);
  assert.doesNotMatch(head, /transfer-encoding/i);
  assert.equal(body, 'of no length');
});

test('HEAD, ranges, 204, 304 and redirects are proxied unchanged', async () => {
  app = (request, response) => {
    switch (request.url) {
      case '/none':
        return void response.writeHead(204).end();
      case '/same':
        return void response.writeHead(304, { etag: '"e"' }).end();
      case '/there':
        return void response.writeHead(302, { location: 'https://example.com/x' }).end();
      default:
        if (request.headers.range !== undefined)
          return void response.writeHead(206, { 'content-range': 'bytes 1-2/5', 'content-length': 2 }).end('el');
        return void response
          .writeHead(200, { 'content-length': 5 })
          .end(request.method === 'HEAD' ? undefined : 'hello');
    }
  };
  const head = await world.visit('/', { method: 'HEAD' });
  assert.deepEqual([head.status, head.headers['content-length'], head.text], [200, '5', '']);
  const range = await world.visit('/', { headers: { range: 'bytes=1-2', 'if-range': '"e"' } });
  assert.deepEqual([range.status, range.headers['content-range'], range.text], [206, 'bytes 1-2/5', 'el']);
  assert.equal(seen.at(-1)?.headers['if-range'], '"e"');
  assert.deepEqual(
    [(await world.visit('/none')).status, (await world.visit('/none')).headers['transfer-encoding']],
    [204, undefined],
  );
  const same = await world.visit('/same', { headers: { 'if-none-match': '"e"' } });
  assert.deepEqual([same.status, same.headers.etag, same.text], [304, '"e"', '']);
  assert.equal((await world.visit('/there')).headers.location, 'https://example.com/x');
});

test('trailers of a response are proxied', async () => {
  app = (_request, response) => {
    response.writeHead(200, { trailer: 'x-sum' });
    response.write('part');
    response.addTrailers({ 'x-sum': 'abc', 'x-berth-thing': 'no', 'clear-site-data': '"cookies"' });
    response.end();
  };
  const { trailers, text } = await world.visit('/', { headers: { te: 'trailers' } });
  assert.equal(text, 'part');
  assert.deepEqual({ ...trailers }, { 'x-sum': 'abc' });
});

test('events arrive one by one, after the head', async () => {
  const sending: { response?: ServerResponse } = {};
  app = (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.flushHeaders();
    sending.response = response;
  };
  const { request, answer } = await world.begin('/', {
    headers: { cookie: await world.cookie(), accept: 'text/event-stream' },
  });
  request.end();
  const events = await answer;
  assert.equal(events.headers['content-type'], 'text/event-stream');
  for (const text of ['data: 1\n\n', 'data: 2\n\n', 'data: 3\n\n']) {
    sending.response?.write(text);
    const [chunk] = (await once(events, 'data')) as [Buffer];
    assert.equal(chunk.toString(), text);
  }
  sending.response?.end();
  await once(events, 'end');
});

test('100 Continue comes from the app, or its refusal instead', async () => {
  const server = http.createServer();
  const asked: (string | undefined)[] = [];
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    asked.push(request.url);
    if (request.url === '/no') {
      response.writeHead(413).end('too much');
    } else {
      response.writeContinue();
      request.pipe(response);
    }
  });
  await world.serve(3001, server);
  const { host, token } = await world.link(3001);
  const options = { method: 'POST', host, headers: { expect: '100-continue', 'content-length': 5 } };

  const wanted = await world.begin(`/yes?token=${token}`, options);
  wanted.request.flushHeaders();
  await once(wanted.request, 'continue');
  wanted.request.end('12345');
  assert.equal((await readAll(await wanted.answer)).text, '12345');

  assert.deepEqual(asked, ['/yes']);
  const unwanted = await world.begin(`/no?token=${token}`, options);
  unwanted.request.on('continue', () => assert.fail('it was told to go on'));
  unwanted.request.flushHeaders();
  const { statusCode } = await unwanted.answer;
  assert.equal(statusCode, 413);
  unwanted.request.destroy();
});

test('fifty concurrent requests get their own responses and reuse connections', async () => {
  app = (request, response) => void setTimeout(() => response.end(request.url), 20);
  const before = world.opened.length;
  const paths = Array.from({ length: 50 }, (_none, index) => `/${index}`);
  const answers = await Promise.all(paths.map((path) => world.visit(path)));
  assert.deepEqual(
    answers.map(({ text }) => text),
    paths,
  );
  const opened = world.opened.length - before;
  assert.ok(opened <= 50);
  for (const path of paths) assert.equal((await world.visit(path)).text, path);
  assert.equal(world.opened.length - before, opened);
});

test('back-pressure reaches the app from a slow client, and the client from a slow app', async () => {
  const chunk = randomBytes(65_536);
  let written = 0;
  app = (_request, response) => {
    const more = (): void => {
      while (written < 64 * 1_048_576) {
        written += chunk.length;
        if (!response.write(chunk)) {
          response.once('drain', more);
          return;
        }
      }
      response.end();
    };
    more();
  };
  const down = await world.begin('/', { headers: { cookie: await world.cookie() } });
  down.request.end();
  const answer = await down.answer;
  answer.pause();
  let before = -1;
  await untilTrue('the app is held back', () => {
    const still = written === before;
    before = written;
    return still && written > 0;
  });
  assert.ok(written < 32 * 1_048_576, `${written} bytes were taken of an app whose visitor reads nothing`);
  let got = 0;
  for await (const part of answer as AsyncIterable<Buffer>) got += part.length;
  assert.equal(got, 64 * 1_048_576);

  const held: { request?: IncomingMessage; response?: ServerResponse } = {};
  app = (request, response) => {
    held.request = request.pause();
    held.response = response;
  };
  const up = await world.begin('/', {
    method: 'POST',
    headers: { cookie: await world.cookie(), 'content-length': 64 * 1_048_576 },
  });
  let sent = 0;
  const push = (): void => {
    while (sent < 64 * 1_048_576) {
      sent += chunk.length;
      if (!up.request.write(chunk)) {
        up.request.once('drain', push);
        return;
      }
    }
    up.request.end();
  };
  push();
  await untilTrue('the app has it', () => held.request !== undefined);
  before = -1;
  await untilTrue('the sender is held back', () => {
    const still = sent === before;
    before = sent;
    return still;
  });
  assert.ok(sent < 32 * 1_048_576, `${sent} bytes were taken for an app that reads nothing`);
  let arrived = 0;
  held.request?.on('data', (part: Buffer) => (arrived += part.length));
  held.request?.once('end', () => held.response?.end('all')).resume();
  assert.equal((await readAll(await up.answer)).text, 'all');
  assert.equal(arrived, 64 * 1_048_576);
});

test('a client that disconnects aborts the app’s request, in every phase', async () => {
  const cookie = await world.cookie();
  const lines = (): string[] =>
    world.api
      .logged()
      .split('\n')
      .filter((line) => line.includes('"brokenOff":true'));
  for (const [within, status] of [
    [false, 499],
    [true, 200],
  ] as const) {
    const gone = Promise.withResolvers<void>();
    const came = Promise.withResolvers<void>();
    app = (_request, response) => {
      response.once('close', () => gone.resolve());
      came.resolve();
      if (within) response.write('part');
    };
    const { request } = await world.begin('/', { headers: { cookie } });
    request.on('error', () => undefined);
    const answered = once(request, 'response');
    answered.catch(() => undefined);
    request.end();
    await came.promise;
    if (within) await answered;
    const before = lines().length;
    request.destroy();
    await gone.promise;
    await untilTrue('the log says how it ended', () => lines().length > before);
    assert.equal((JSON.parse(lines().at(-1) ?? '') as { status: number }).status, status);
  }

  const aborted = Promise.withResolvers<void>();
  app = (request) => {
    request.resume();
    request.once('aborted', () => aborted.resolve());
  };
  const up = await world.begin('/', { method: 'POST', headers: { cookie, 'content-length': 1_000_000 } });
  up.request.on('error', () => undefined);
  up.request.write('some');
  await untilTrue('the app has the beginning', () => seen.some(({ method }) => method === 'POST'));
  up.request.destroy();
  await aborted.promise;
});

test('a response that the app aborts is aborted, never completed', async () => {
  for (const headers of [{ 'content-length': '100' }, { 'transfer-encoding': 'chunked' }]) {
    app = (_request, response) => {
      response.writeHead(200, headers);
      response.write('part');
      setTimeout(() => response.destroy(), 20);
    };
    await assert.rejects(world.visit('/'), /aborted|socket hang up|ECONNRESET/);
  }
});

test('a request on a stale connection is retried unnoticed; a body is never sent twice', async () => {
  const asked: string[] = [];
  let connections = 0;
  // Accepts the second request of a connection and closes it without a response.
  const server = http.createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    if (used.has(request.socket)) request.socket.destroy();
    else response.end('answered');
    used.add(request.socket);
  });
  const used = new WeakSet();
  server.on('connection', () => (connections += 1));
  await world.serve(3002, server);
  const { host, token } = await world.link(3002);
  const [cookie = ''] = (await world.ask(`/?token=${token}`, { host })).headers['set-cookie'] ?? [];
  const ask = (path: string, method: string): Promise<{ text: string; status: number }> =>
    world.ask(path, {
      host,
      method,
      headers: { cookie: cookie.split(';', 1)[0] ?? '' },
      ...(method === 'POST' ? { body: 'x' } : {}),
    });

  const { status, text } = await ask('/a', 'GET');
  assert.deepEqual([status, text], [200, 'answered']);
  assert.deepEqual(asked, ['GET /', 'GET /a', 'GET /a']);
  assert.equal(connections, 2);
  for (const path of ['/b', '/c']) assert.equal((await ask(path, 'POST')).text, 'answered');
  assert.deepEqual(asked.slice(3), ['POST /b', 'POST /c']);
  assert.equal(connections, 4);
});
