// Headers of every response, including those outside any route.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { FILE_LINK_PATH } from '@berth/contract/files/links.ts';
import { errorEnvelope } from '@berth/contract/route/errors.ts';
import { OPEN_PATHS } from '@berth/contract/access/open-paths.ts';
import { ROUTES } from '@berth/contract/routes.ts';
import { sql } from 'kysely';
import { startApi, type TestApi } from '../../world/api.ts';

const OF_EVERY_ANSWER = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};
const TRANSPORT = 'strict-transport-security';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false, bounds: { keepAlive: { headersAfter: 1, spaceEvery: 1 } } });
});
after(() => api.close());

interface RawAnswer {
  status: number;
  headers: Headers;
  text: string;
}

/** Returns all bytes of a dedicated connection until the server closes it. */
async function exchange(text: string, url = api.url): Promise<RawAnswer> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  let answer = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => (answer += chunk));
  socket.write(text);
  await once(socket, 'close');
  const [head = '', ...body] = answer.split('\r\n\r\n');
  const [first = '', ...lines] = head.split('\r\n');
  const headers = new Headers(
    lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]),
  );
  return { status: Number(first.split(' ')[1]), headers, text: body.join('\r\n\r\n') };
}

async function get(path: string, options: RequestInit = {}): Promise<RawAnswer> {
  const response = await fetch(api.url + path, { redirect: 'manual', ...options });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

function assertHeaders({ headers }: RawAnswer): void {
  for (const [name, value] of Object.entries(OF_EVERY_ANSWER)) assert.equal(headers.get(name), value, name);
  assert.match(headers.get('x-request-id') ?? '', /^req_[0-9a-f]{32}$/);
  assert.equal(headers.get(TRANSPORT), null);
  for (const name of headers.keys()) assert.doesNotMatch(name, /^(access-control-|server$|x-powered-by$)/);
}

const authorization = (): { authorization: string } => ({ authorization: `Bearer ${api.token}` });
const json = { 'content-type': 'application/json' };
const post = (path: string, body: string, headers: Record<string, string> = json): Promise<RawAnswer> =>
  get(path, { method: 'POST', body, headers: { ...authorization(), ...headers } });

const ANSWERS: [kind: string, status: number, ask: () => Promise<RawAnswer>][] = [
  ['a success', 200, () => get('/v1/me', { headers: authorization() })],
  ['a success without a body, by HEAD', 200, () => get('/v1/me', { method: 'HEAD', headers: authorization() })],
  ['the health check', 200, () => get('/health')],
  ['401', 401, () => get('/v1/me')],
  ['403', 403, () => post('/v1/orgs', '{"name":"x"}')],
  ['404 of a resource', 404, () => get('/v1/sandboxes/sbx_aaaaaaaaaaaaaaaaaaaaaaaa', { headers: authorization() })],
  ['404 of a path', 404, () => get('/v1/nothing')],
  ['405', 405, () => get('/v1/me', { method: 'DELETE' })],
  [
    '405 of a method that nothing has',
    405,
    () => exchange('PROPFIND /v1/me HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'),
  ],
  ['400 of a path that is no valid escape', 400, () => get('/v1/sandboxes/%zz')],
  ['400 of a body', 400, () => post(`/v1/orgs/${api.orgId}/projects`, '{')],
  ['413', 413, () => post(`/v1/orgs/${api.orgId}/projects`, 'x'.repeat(300_000))],
  ['415', 415, () => post(`/v1/orgs/${api.orgId}/projects`, 'x', { 'content-type': 'text/plain' })],
  ['what is no HTTP', 400, () => exchange('nonsense\r\n\r\n')],
  ['a version of HTTP that is none', 400, () => exchange('GET / HTTP/9.9\r\nhost: x\r\n\r\n')],
  [
    'a head that is too long',
    431,
    () => exchange(`GET /health HTTP/1.1\r\nhost: x\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`),
  ],
  ['a request without a host', 400, () => exchange('GET /health HTTP/1.1\r\nconnection: close\r\n\r\n')],
  [
    'an expectation',
    200,
    () => exchange('GET /health HTTP/1.1\r\nhost: x\r\nexpect: a-miracle\r\nconnection: close\r\n\r\n'),
  ],
  [
    'a wish to upgrade',
    200,
    () => exchange('GET /health HTTP/1.1\r\nhost: x\r\nconnection: close, upgrade\r\nupgrade: websocket\r\n\r\n'),
  ],
  ['HTTP/1.0', 200, () => exchange('GET /health HTTP/1.0\r\n\r\n')],
];

for (const [kind, status, ask] of ANSWERS) {
  test(`${kind} has the common security headers`, async () => {
    const answer = await ask();
    assert.equal(answer.status, status, answer.text);
    assertHeaders(answer);
    if (status >= 400) errorEnvelope.parse(JSON.parse(answer.text));
  });
}

test('an internal error has the common security headers', async () => {
  await sql`alter table api_key rename to api_key_away`.execute(api.db);
  try {
    const answer = await get('/v1/me', { headers: authorization() });
    assert.equal(answer.status, 500);
    assertHeaders(answer);
  } finally {
    await sql`alter table api_key_away rename to api_key`.execute(api.db);
  }
});

test('a response with early headers has the common security headers', async () => {
  const { id } = await api.makeSandbox('ready');
  const begun = Promise.withResolvers<void>();
  api.front.exec = async () => {
    await begun.promise;
    return { exitCode: 0, stdout: '', stderr: '', truncated: false, timedOut: false };
  };
  const response = await fetch(`${api.url}/v1/sandboxes/${id}/exec`, {
    method: 'POST',
    headers: { ...authorization(), ...json },
    body: '{"command":"true"}',
  });
  begun.resolve();
  assertHeaders({ status: response.status, headers: response.headers, text: await response.text() });
});

test('pages have their own content security policy and the other common headers', async () => {
  for (const path of ['/sign-in', '/pages.css']) {
    const { status, headers } = await get(path);
    assert.equal(status, 200);
    assert.match(headers.get('x-request-id') ?? '', /^req_[0-9a-f]{32}$/);
    assert.equal(headers.get('x-content-type-options'), 'nosniff');
    assert.match(headers.get('content-security-policy') ?? '', /default-src 'none'/);
    assert.match(headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/);
  }
});

test('responses have Strict-Transport-Security exactly if the public URL is https', async () => {
  const secure = await startApi({ durable: false, settings: { publicUrl: 'https://berth.example.test' } });
  try {
    const answers = [
      await fetch(`${secure.url}/health`),
      await fetch(`${secure.url}/v1/me`),
      await fetch(`${secure.url}/nothing`),
    ];
    for (const { headers } of answers) assert.equal(headers.get(TRANSPORT), 'max-age=31536000');
    assert.equal((await exchange('nonsense\r\n\r\n', secure.url)).headers.get(TRANSPORT), 'max-age=31536000');
  } finally {
    await secure.close();
  }
});

test('a request id is never taken from the caller', async () => {
  const sent = `req_${'0'.repeat(32)}`;
  const ids = new Set<string | null>();
  for (const path of ['/health', '/v1/me', '/nothing', '/v1/sandboxes/%zz']) {
    const { headers } = await get(path, { headers: { 'x-request-id': sent, 'request-id': sent } });
    ids.add(headers.get('x-request-id'));
  }
  ids.add((await exchange(`nonsense\r\nx-request-id: ${sent}\r\n\r\n`)).headers.get('x-request-id'));
  assert.equal(ids.size, 5);
  assert.ok(!ids.has(sent) && !ids.has(null));
});

test('only file links allow cross-origin requests: elsewhere no preflight response, no CORS header', async () => {
  const origin = 'https://elsewhere.example.test';
  const paths = new Set([...ROUTES, ...OPEN_PATHS].map((route) => route.path.replaceAll(/\{\w+\}/g, 'x')));
  assert.ok(paths.delete(`${FILE_LINK_PATH}/x`));
  for (const path of paths) {
    for (const method of ['GET', 'POST', 'DELETE']) {
      const preflight = await get(path, {
        method: 'OPTIONS',
        headers: { origin, 'access-control-request-method': method, 'access-control-request-headers': 'authorization' },
      });
      assert.equal(preflight.status, 405, path);
      assertHeaders(preflight);
    }
    const { headers } = await get(path, { headers: { origin } });
    for (const name of headers.keys()) assert.doesNotMatch(name, /^access-control-/, path);
  }
  assertHeaders(await get('/v1/me', { headers: { origin, ...authorization() } }));
  const nowhere = await get('/nothing', {
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': 'GET' },
  });
  assert.equal(nowhere.status, 404);
  assertHeaders(nowhere);
});
