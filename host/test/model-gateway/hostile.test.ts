// A hostile guest that speaks raw HTTP, and a provider in hostile hands. Neither decides what the
// other gets, stops the gateway or reaches the requests of another VM.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { until } from '../../../os/test/until.ts';
import { accessTo, GatewayOfVm, KEY, messageIn, POSTS, sharedLimits } from './model-world.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const UNLIMITED = { vmBurst: 10_000, orgBurst: 10_000 };
type Behavior = (socket: Socket, received: string) => unknown;

/** A provider below HTTP: calls the behavior with what each read brings. */
async function startRaw(t: TestContext, behavior: Behavior): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined).on('data', (data) => void behavior(socket, data.toString('latin1')));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Sends bytes to the gateway, and an end if it does not close; resolves with its response. */
async function send(vm: GatewayOfVm, text: string): Promise<string> {
  const socket = connect({ port: vm.port, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => undefined).write(text, 'latin1');
  let received = '';
  socket
    .on('end', () => socket.end())
    .on('data', (data) => {
      received += data.toString('latin1');
      socket.end();
    });
  await once(socket, 'close');
  return received;
}

const POST = 'POST /openai/v1/responses HTTP/1.1\r\nHost: x\r\n';
const HIDDEN = 'GET /openai/v1/files HTTP/1.1\r\nHost: x\r\n\r\n';
const REFUSED: [string, string, number | 'closed'][] = [
  ['two kinds of length', `${POST}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${HIDDEN}`, 400],
  ['two codings', `${POST}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n${HIDDEN}`, 400],
  ['a space after the name', `${POST}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${HIDDEN}`, 400],
  ['an unknown coding', `${POST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${HIDDEN}`, 400],
  ['two lengths', `${POST}Content-Length: 0\r\nContent-Length: 44\r\n\r\n${HIDDEN}`, 400],
  ['a list of lengths', `${POST}Content-Length: 0, 44\r\n\r\n${HIDDEN}`, 400],
  ['a length with a sign', `${POST}Content-Length: +0\r\n\r\n${HIDDEN}`, 400],
  ['a length beyond 64 bits', `${POST}Content-Length: 99999999999999999999\r\n\r\n`, 400],
  ['a chunk without a size', `${POST}Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n`, 400],
  ['bare line feeds', `POST /openai/v1/responses HTTP/1.1\nHost: x\nContent-Length: 0\n\n`, 400],
  ['a folded header', `${POST}Accept: a\r\n authorization: b\r\nContent-Length: 0\r\n\r\n`, 400],
  ['a header with a carriage return', `${POST}Accept: a\rX-Api-Key: b\r\nContent-Length: 0\r\n\r\n`, 400],
  ['a header with NUL', `${POST}Accept: a\0b\r\nContent-Length: 0\r\n\r\n`, 400],
  ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
  ['a tunnel', 'CONNECT 127.0.0.1:5432 HTTP/1.1\r\nHost: x\r\n\r\n', 'closed'],
  ['a tunnel by a path', 'CONNECT /openai/v1/responses HTTP/1.1\r\nHost: x\r\n\r\n', 400],
  ['an echo', 'TRACE /openai/v1/responses HTTP/1.1\r\nHost: x\r\n\r\n', 405],
  ['a full URL', 'POST http://x/openai/v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n', 404],
  ['a path without a root', 'POST *openai/v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n', 404],
  ['a fragment', 'POST /openai/v1/responses#x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n', 404],
  ['an unknown expectation', `${POST}Expect: more\r\nContent-Length: 0\r\n\r\n`, 417],
  ['a head of 40 kB', `${POST}Accept: ${'x'.repeat(40_000)}\r\nContent-Length: 0\r\n\r\n`, 431],
];

test('a malformed request reaches no provider, and neither does what it hides', async (t) => {
  const seen: string[] = [];
  const url = await startRaw(t, (socket, received) => {
    seen.push(received);
    socket.write(OK);
  });
  const vm = await GatewayOfVm.start(t, sharedLimits(UNLIMITED), accessTo(url));
  for (const [what, text, status] of REFUSED) {
    const received = await send(vm, text);
    const expected = status === 'closed' ? /^$/ : new RegExp(`^(HTTP/1.1 ${status} |$)`);
    assert.match(received, expected, what);
  }
  assert.deepEqual(seen, []);
});

const FORWARDED: [string, string, string, string][] = [
  ['a body longer than announced', `${POST}Content-Length: 2\r\n\r\n{}${HIDDEN}`, 'POST /v1/responses', '{}'],
  [
    'chunk extensions and trailers',
    `${POST}Transfer-Encoding: chunked\r\n\r\n2;x="${HIDDEN.slice(0, 3)}"\r\n{}\r\n0\r\nAuthorization: forged\r\n\r\n`,
    ...(['POST /v1/responses', '2\r\n{}\r\n0\r\n\r\n'] as const),
  ],
  ['the key as a hop', `${POST}Connection: authorization\r\nContent-Length: 2\r\n\r\n{}`, 'POST /v1/responses', '{}'],
  ['two hosts', `${POST}Host: y\r\nContent-Length: 2\r\n\r\n{}`, 'POST /v1/responses', '{}'],
  [
    'an upgrade',
    `GET /openai/v1/models HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    ...(['GET /v1/models', ''] as const),
  ],
  [
    'a body of a GET',
    `GET /openai/v1/models HTTP/1.1\r\nHost: x\r\nContent-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
    ...(['GET /v1/models', ''] as const),
  ],
  [
    'line feeds in the query',
    'GET /openai/v1/models?client_version=1%0d%0aX:%20y&after=%2e%2e HTTP/1.1\r\nHost: x\r\n\r\n',
    ...(['GET /v1/models', ''] as const),
  ],
];

test('a request with more than its form allows is forwarded as one plain request', async (t) => {
  let seen = '';
  const url = await startRaw(t, (socket, received) => {
    seen += received;
    if (seen.startsWith('GET') ? seen.endsWith('\r\n\r\n') : /\r\n\r\n(\{\}|2\r\n\{\}\r\n0\r\n\r\n)$/.test(seen))
      socket.end(OK);
  });
  const vm = await GatewayOfVm.start(t, sharedLimits(UNLIMITED), accessTo(url));
  for (const [what, text, line, body] of FORWARDED) {
    seen = '';
    assert.match(await send(vm, text), /^HTTP\/1.1 200 /, what);
    const [head = '', ...rest] = seen.split('\r\n\r\n');
    const [first = '', ...headers] = head.split('\r\n');
    assert.equal(first, `${line} HTTP/1.1`, what);
    assert.equal(rest.join('\r\n\r\n'), body, what);
    assert.ok(headers.includes(`authorization: Bearer ${KEY}`), what);
    const names = headers.map((header) => header.split(':', 1)[0]?.toLowerCase());
    const known = ['accept-encoding', 'authorization', 'connection', 'content-length', 'host', 'transfer-encoding'];
    assert.deepEqual(
      names.filter((name) => !known.includes(name ?? '')),
      [],
      what,
    );
    assert.ok(!/forged|websocket/.test(seen), what);
  }
});

test('pipelined requests are held back until the first one has its response', async (t) => {
  const held: Socket[] = [];
  const url = await startRaw(t, (socket) => held.push(socket));
  const vm = await GatewayOfVm.start(t, sharedLimits(UNLIMITED), accessTo(url));
  const socket = connect(vm.port, '127.0.0.1').on('error', () => undefined);
  const first = `${POST}Content-Length: 2\r\n\r\n{}`;
  socket.write(first + HIDDEN.repeat(500_000));
  await until('the first request', async () => (held.length === 1 ? true : null));
  let unsent = -1;
  await until('the guest waits', async () => {
    const was = unsent;
    unsent = socket.writableLength;
    return was === unsent ? true : null;
  });
  assert.ok(unsent > HIDDEN.length * 250_000, `${unsent} bytes are unsent`);
  socket.destroy();
});

/** Sends a head, then the piece without an end. */
function flood(socket: Socket, head: string, piece: string): void {
  const chunk = piece.repeat(Math.ceil(65_536 / piece.length));
  const more = (): void => {
    while (!socket.destroyed && socket.write(chunk));
  };
  socket.on('drain', more).write(head);
  more();
}

const INTERIM = 'HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n';
const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
const BROKEN: [string, Behavior, 502 | 'broken'][] = [
  ['interim responses without an end', (socket) => flood(socket, '', INTERIM), 502],
  ['headers without an end', (socket) => flood(socket, 'HTTP/1.1 200 OK\r\n', 'X-A: b\r\n'), 502],
  ['a reason without an end', (socket) => flood(socket, 'HTTP/1.1 200 ', 'x'), 502],
  ['two kinds of length', (socket) => socket.write(`${CHUNKED.slice(0, -2)}Content-Length: 2\r\n\r\n0\r\n\r\n`), 502],
  ['two lengths', (socket) => socket.write(OK.replace('\r\n\r\n', '\r\nContent-Length: 3\r\n\r\n')), 502],
  ['a header with NUL', (socket) => socket.write(OK.replace('\r\n', '\r\nRequest-Id: a\0b\r\n')), 502],
  ['no HTTP', (socket) => socket.end('ok'), 502],
  ['a chunk extension without an end', (socket) => flood(socket, `${CHUNKED}2;`, 'x'), 'broken'],
  ['trailers without an end', (socket) => flood(socket, `${CHUNKED}2\r\nok\r\n0\r\n`, 'X-A: b\r\n'), 'broken'],
  ['a body without an end', (socket) => flood(socket, 'HTTP/1.1 200 OK\r\n\r\n', 'x'), 'broken'],
  ['a body shorter than announced', (socket) => socket.end(OK.slice(0, -1)), 'broken'],
];

test('a hostile response ends its request only, and the gateway serves on', async (t) => {
  let behavior: Behavior = (socket) => socket.write(OK);
  const url = await startRaw(t, (socket, received) => behavior(socket, received));
  const shared = sharedLimits({ ...UNLIMITED, responseBytes: 1_048_576, exchangeMs: 30_000 });
  const vm = await GatewayOfVm.start(t, shared, accessTo(url));
  const other = await GatewayOfVm.start(t, shared, accessTo(await startRaw(t, (socket) => socket.write(OK))));
  for (const [what, act, outcome] of BROKEN) {
    behavior = act;
    const call = vm.call(POSTS.openai);
    if (outcome === 'broken') {
      await assert.rejects(call, { code: 'ECONNRESET' }, what);
    } else {
      const { status, text } = await call;
      assert.equal(status, outcome, what);
      assert.match(messageIn('openai', text), /the model provider (cannot be reached|sent too many interim)/, what);
    }
    assert.equal((await other.call(POSTS.openai)).text, 'ok', what);
  }
});

test('bytes after a response are no response to the next request', async (t) => {
  const poison = OK.replace('ok', 'no');
  for (const early of [true, false]) {
    let requests = 0;
    const url = await startRaw(t, (socket) => {
      requests += 1;
      if (requests > 1) return socket.write(OK.replace('ok', 'me'));
      if (early) return socket.write(OK + poison);
      return socket.write(OK, () => setImmediate(() => socket.write(poison)));
    });
    const vm = await GatewayOfVm.start(t, sharedLimits(), accessTo(url));
    assert.equal((await vm.call(POSTS.openai)).text, 'ok');
    assert.equal((await vm.call(POSTS.openai)).text, 'me');
  }
});
