// Serving the web console: page, assets, encodings, and an API without a console.
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startSite, type TestSite } from '../pages/site.ts';

const PAGE = '<!doctype html><title>Console</title>';
const SCRIPT = 'export const one = 1;';
let folder: string;
let site: TestSite;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-console-'));
  await mkdir(join(folder, 'assets'));
  await writeFile(join(folder, 'index.html'), PAGE);
  await writeFile(join(folder, 'LICENSES.md'), 'licences');
  await writeFile(join(folder, 'assets/main-abcdefgh.js'), SCRIPT);
  await writeFile(join(folder, 'assets/main-abcdefgh.js.br'), 'brotli');
  await writeFile(join(folder, 'assets/main-abcdefgh.js.gz'), 'gzip');
  await writeFile(join(folder, 'assets/style-abcdefgh.css'), 'h1 {}');
  site = await startSite({ settings: { consoleFolder: folder } });
});
after(async () => {
  await site.close();
  await rm(folder, { recursive: true });
});

interface Raw {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

/** Without the decompression of `fetch`. */
function get(path: string, encodings?: string, url = site.url): Promise<Raw> {
  return new Promise((resolve, reject) => {
    const headers = encodings === undefined ? {} : { 'accept-encoding': encodings };
    const call = request(url + path, { headers, agent: false }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => (body += text));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }));
    });
    call.on('error', reject).end();
  });
}

test('every path below /console is the page, revalidated, under the strict policy', async () => {
  for (const path of ['/console', '/console/', '/console/orgs/org_1/sandboxes?status=failed', '/console/x/y.js']) {
    const { status, headers, body } = await get(path);
    assert.deepEqual([status, body], [200, PAGE], path);
    assert.equal(headers['content-type'], 'text/html; charset=utf-8');
    assert.equal(headers['cache-control'], 'no-cache');
    const policy = String(headers['content-security-policy']);
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self'; /);
    assert.match(policy, /connect-src 'self' ws:\/\/berth\.example\.test; /);
    assert.match(policy, /frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'$/);
    assert.doesNotMatch(policy, /unsafe|\*|https?:/);
    assert.equal(headers['x-content-type-options'], 'nosniff');
    assert.equal(headers['referrer-policy'], 'no-referrer');
    assert.equal(headers['cross-origin-opener-policy'], 'same-origin');
  }
});

test('an asset is immutable, and sent in the best accepted encoding', async () => {
  const cases = [
    ['gzip, deflate, br', 'br', 'brotli'],
    ['gzip;q=1.0, br;q=0', 'gzip', 'gzip'],
    ['GZIP', 'gzip', 'gzip'],
    ['deflate', undefined, SCRIPT],
    [undefined, undefined, SCRIPT],
  ] as const;
  for (const [accepted, encoding, content] of cases) {
    const { status, headers, body } = await get('/console/assets/main-abcdefgh.js', accepted);
    assert.deepEqual([status, headers['content-encoding'], body], [200, encoding, content], accepted);
    assert.equal(headers['cache-control'], 'public, max-age=31536000, immutable');
    assert.equal(headers['vary'], 'accept-encoding');
    assert.equal(headers['content-type'], 'text/javascript; charset=utf-8');
  }
  const plain = await get('/console/assets/style-abcdefgh.css', 'br, gzip');
  assert.deepEqual([plain.headers['content-encoding'], plain.body], [undefined, 'h1 {}']);
});

test('a missing asset, and a file that is none, is 404 and not stored', async () => {
  for (const name of [
    'main-old.js',
    'main-abcdefgh.js.br',
    '..%2findex.html',
    '..%2f..%2fetc%2fpasswd',
    'LICENSES.md',
  ]) {
    const { status, headers, body } = await get(`/console/assets/${name}`, 'br');
    assert.equal(status, 404, name);
    assert.equal(headers['cache-control'], 'no-store');
    assert.equal((JSON.parse(body) as { error: { code: string } }).error.code, 'route_not_found');
  }
});

test('/ and a sign-in without a target lead to the console', async () => {
  const { status, headers } = await get('/');
  assert.deepEqual([status, headers.location], [303, '/console']);
  const { email } = await site.account();
  const visitor = site.visitor();
  await visitor.signIn(email);
  const signedIn = await visitor.get('/sign-in');
  assert.deepEqual([signedIn.status, signedIn.headers.get('location')], [303, '/console']);
  const elsewhere = await visitor.get('/sign-in?return_to=/device');
  assert.equal(elsewhere.headers.get('location'), '/device');
});

test('without a console its paths are 404, and / leads to the sign-in page', async () => {
  for (const path of ['/console', '/console/x', '/console/assets/main-abcdefgh.js'])
    assert.equal((await get(path, 'br', site.api.url)).status, 200, path);
  const bare = await startSite();
  try {
    for (const path of ['/console', '/console/x', '/console/assets/main-abcdefgh.js']) {
      const { status, headers } = await get(path, 'br', bare.url);
      assert.deepEqual([status, headers['cache-control']], [404, 'no-store'], path);
    }
    const { status, headers } = await get('/', undefined, bare.url);
    assert.deepEqual([status, headers.location], [303, '/sign-in']);
  } finally {
    await bare.close();
  }
});
