// `berth api` against a service that records its requests.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { bodyOf, typedValue } from '../../src/api/fields.ts';
import { berth, newHome, type Ended } from '../world/berth.ts';

interface Seen {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
  body: string;
}
interface Answer {
  status?: number;
  headers?: Record<string, string>;
  body?: string;
}

const TOKEN = 'brt_a_token_of_the_test';
let server: Server;
let url: string;
let seen: Seen[];
let answer: (seen: Seen) => Answer;
before(async () => {
  server = createServer((request, response) => {
    void text(request).then((body) => {
      const { method = '', url: path = '', headers } = request;
      const one = { method, url: path, headers, body };
      seen.push(one);
      const { status = 200, headers: more = {}, body: content = '{}' } = answer(one);
      response.writeHead(status, { 'content-type': 'application/json', ...more }).end(content);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => server.close());
beforeEach(() => {
  seen = [];
  answer = () => ({ body: '{"ok":true}' });
});

async function api(args: readonly string[], stdin = ''): Promise<Ended> {
  return await berth(['api', ...args], { env: { BERTH_URL: url, BERTH_API_KEY: TOKEN }, stdin });
}

test('a request has method, path, fields, headers and the credential, and its JSON is printed', async () => {
  const env = ['--org', 'org_a', '--project', 'prj_a'];
  const get = await api(['get', '/v1/orgs/{orgId}/sandboxes?q=a', '-f', 'status=ready', '-f', 'metadata[a]=1', ...env]);
  assert.deepEqual([get.code, get.stdout, get.stderr], [0, '{\n  "ok": true\n}\n', '']);
  const fields = ['-f', 'name={orgId}', '-F', 'projectId={projectId}', '-F', 'metadata[n]=3', '-F', 'list[]=true'];
  await api(['POST', '/v1/x', ...fields, '-F', 'list[]=b', '-H', 'Prefer: respond-async', ...env]);
  const [first, second] = seen;
  assert.deepEqual(
    [first?.method, first?.url, first?.body],
    ['GET', '/v1/orgs/org_a/sandboxes?q=a&status=ready&metadata%5Ba%5D=1', ''],
  );
  assert.equal(first?.headers.authorization, `Bearer ${TOKEN}`);
  assert.deepEqual(JSON.parse(second?.body ?? ''), {
    name: '{orgId}',
    projectId: 'prj_a',
    metadata: { n: 3 },
    list: [true, 'b'],
  });
  assert.deepEqual([second?.headers['prefer'], second?.headers['content-type']], ['respond-async', 'application/json']);
});

test('a body comes from a file or stdin, unchanged', async () => {
  const file = join(newHome(), 'body.json');
  await writeFile(file, '{"a": 1}');
  assert.equal((await api(['PUT', '/v1/x', '--input', file])).code, 0);
  assert.equal((await api(['PUT', '/v1/x', '--input', '-', '-H', 'content-type: text/plain'], 'ü\n')).code, 0);
  assert.deepEqual(
    seen.map(({ body, headers }) => [body, headers['content-type']]),
    [
      ['{"a": 1}', 'application/json'],
      ['ü\n', 'text/plain'],
    ],
  );
  const missing = await api(['PUT', '/v1/x', '--input', `${file}.none`]);
  assert.deepEqual([missing.code, /cannot read .*none: ENOENT/.test(missing.stderr)], [1, true]);
});

test('--paginate requests page after page, and ends when a cursor repeats', async () => {
  answer = ({ url: path }) => {
    const at = Number(new URL(path, url).searchParams.get('after') ?? 0);
    return { body: JSON.stringify({ items: [at], nextCursor: at < 2 ? String(at + 1) : null }) };
  };
  const { code, stdout } = await api(['GET', '/v1/x?limit=1', '--paginate']);
  assert.deepEqual([code, stdout.match(/"items"/g)?.length], [0, 3]);
  assert.deepEqual(
    seen.map((one) => one.url),
    ['/v1/x?limit=1', '/v1/x?limit=1&after=1', '/v1/x?limit=1&after=2'],
  );
  answer = () => ({ body: '{"nextCursor":"a"}' });
  const endless = await api(['GET', '/v1/x', '--paginate']);
  assert.deepEqual([endless.code, /the same page twice/.test(endless.stderr)], [1, true]);
});

test('the credential reaches no other host: not by the path, and not by a redirect', async (t) => {
  const requests: string[] = [];
  const other = createServer((request, response) => {
    requests.push(request.url ?? '');
    response.end('{}');
  }).listen(0, '127.0.0.1');
  t.after(() => other.close());
  await once(other, 'listening');
  const elsewhere = `127.0.0.1:${(other.address() as AddressInfo).port}`;
  for (const path of [
    `http://${elsewhere}/v1/me`,
    `//${elsewhere}/v1/me`,
    `@${elsewhere}/v1/me`,
    `/v1/../auth/token`,
    `/v1/%2e%2E/auth/token`,
    `/v1/..%2fauth`,
    String.raw`/v1\..\auth`,
    '/auth/token',
    'v1/me',
    '/v1/a#b',
    '/v1/a\nb',
    '',
  ]) {
    const { code, stderr } = await api(['GET', path]);
    assert.deepEqual([code, /is no path of the API/.test(stderr)], [2, true], `${path}: ${stderr}`);
  }
  assert.deepEqual(seen, []);
  for (const status of [301, 302, 307, 308]) {
    answer = () => ({ status, headers: { location: `http://${elsewhere}/v1/me` } });
    const { code, stdout, stderr } = await api(['GET', '/v1/me']);
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /the service redirects to 'http:\/\/127\.0\.0\.1:\d+\/v1\/me': not followed/);
  }
  assert.deepEqual(requests, []);
});

test('an error of the API is printed with its body, and sets the exit code', async () => {
  const error = { code: 'unauthenticated', message: 'the bearer\u001B[1m token is unknown' };
  answer = () => ({ status: 401, body: JSON.stringify({ error }) });
  const refused = await api(['DELETE', '/v1/x', '-f', 'a=b']);
  assert.equal(refused.code, 4);
  assert.match(refused.stdout, /"code": "unauthenticated"/);
  assert.match(refused.stderr, /^berth: the bearer\\u001b\[1m token is unknown \(unauthenticated\)\n {2}sign in with/);
  assert.equal(seen[0]?.url, '/v1/x?a=b');
  assert.ok(!refused.stderr.includes(TOKEN));
  answer = () => ({ status: 502, headers: { 'content-type': 'text/html' }, body: '<p>' });
  const proxy = await api(['GET', '/v1/x']);
  assert.deepEqual([proxy.code, proxy.stdout], [1, '<p>']);
  assert.match(proxy.stderr, /the service responded with 502/);
  answer = () => ({ body: '{' });
  assert.match((await api(['GET', '/v1/x'])).stderr, /the response is not valid JSON/);
});

test('wrong input is refused before a request', async () => {
  for (const [args, message] of [
    [['TRACE', '/v1/x'], /unknown method 'TRACE': use one of GET, /],
    [['POST', '/v1/x', '--paginate'], /--paginate requires GET/],
    [['GET', '/v1/x', '--input', '-'], /--input cannot be combined with GET/],
    [['POST', '/v1/x', '--input', '-', '-f', 'a=b'], /--input cannot be combined with fields/],
    [['POST', '/v1/x', '-f', 'a'], /It must be key=value/],
    [['POST', '/v1/x', '-f', 'a[][b]=1'], /It must be key=value/],
    [['POST', '/v1/x', '-f', 'a=1', '-f', 'a[b]=1'], /the field 'a\[b\]' conflicts with another field/],
    [['GET', '/v1/x', '-H', 'Authorization: Bearer x'], /those of the profile/],
    [['GET', '/v1/x', '-H', 'X: a\nHost: b'], /It must be Name: value/],
  ] as const) {
    const { code, stdout, stderr } = await api(args);
    assert.deepEqual([code, stdout], [2, ''], stderr);
    assert.match(stderr, message);
  }
  assert.deepEqual(seen, []);
});

test('typed fields are numbers, booleans and null; keys of prototypes are ordinary', () => {
  assert.deepEqual(['1', '-2', '1.5', '007', 'true', 'null', 'x', ''].map(typedValue), [
    1,
    -2,
    '1.5',
    '007',
    true,
    null,
    'x',
    '',
  ]);
  const text = JSON.stringify(
    bodyOf([
      ['__proto__[a]', 1],
      ['constructor', 2],
    ]),
  );
  assert.equal(text, '{"__proto__":{"a":1},"constructor":2}');
  assert.equal(({} as { a?: unknown }).a, undefined);
});
