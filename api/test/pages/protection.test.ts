// Rules of every page: accepted form origins, headers, refused requests.
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { after, before, test } from 'node:test';
import { OPEN_PATHS } from '@berth/contract/access/open-paths.ts';
import { isForeign } from '../../src/pages/parts/protection.ts';
import { startSite, type TestSite } from './site.ts';

const PAGES = OPEN_PATHS.filter(({ why }) => /^(page|form of the page)/.test(why));
const FORMS = PAGES.filter(({ method }) => method === 'POST').map(({ path }) => path);

let site: TestSite;
before(async () => {
  site = await startSite();
});
after(() => site.close());

test('every page and form responds with English HTML, a title, one heading and strict headers', async () => {
  assert.equal(PAGES.length, 28);
  for (const { method, path } of PAGES) {
    const visitor = site.visitor();
    const { status, headers, text } = method === 'GET' ? await visitor.get(path) : await visitor.post(path, {});
    const policy = headers.get('content-security-policy') ?? '';
    assert.match(
      policy,
      /default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'/,
      path,
    );
    assert.equal(headers.get('x-content-type-options'), 'nosniff');
    assert.equal(headers.get('x-frame-options'), 'DENY');
    assert.equal(headers.get('referrer-policy'), 'same-origin');
    if (status === 303) continue;
    assert.equal(headers.get('content-type'), 'text/html; charset=utf-8', `${method} ${path}`);
    assert.match(text, /^<!doctype html>\s*<html lang="en">/);
    assert.match(text, /<title>[^<]+ · Berth<\/title>/);
    assert.equal(text.match(/<h1>/g)?.length, 1);
    assert.doesNotMatch(text, /<script|\son\w+=|\sstyle=|javascript:/i);
  }
});

test('a cross-site form is 403 before it is read and changes nothing', async () => {
  const { userId, email } = await site.account();
  const visitor = site.visitor();
  await visitor.signIn(email);
  const before = await site.api.db.selectFrom('session').select('id').where('userId', '=', userId).execute();
  const foreign = [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'cross-site', origin: site.url },
    { 'sec-fetch-site': '' },
  ];
  for (const path of FORMS) {
    for (const headers of foreign) {
      const { status, heading } = await visitor.post(path, { decision: 'approve' }, headers);
      assert.deepEqual(
        [status, heading],
        [403, 'This form was sent from another site'],
        `${path} ${JSON.stringify(headers)}`,
      );
    }
    // Refused before parsing.
    assert.equal(
      (await visitor.post(path, {}, { 'sec-fetch-site': 'cross-site', 'content-type': 'application/json' })).status,
      403,
    );
  }
  assert.deepEqual(await site.api.db.selectFrom('session').select('id').where('userId', '=', userId).execute(), before);
});

test('without Sec-Fetch-Site the Origin decides; requests with neither are not from browsers', () => {
  const publicUrl = 'https://berth.example.test';
  const host = '10.0.0.7:4800';
  const cases: [Record<string, string>, boolean][] = [
    [{ host }, false],
    [{ host, origin: publicUrl }, false],
    [{ host, origin: `http://${host}` }, false],
    [{ host: 'Example.Test:4800', origin: 'http://example.test:4800' }, false],
    [{ host, origin: 'https://berth.example.test.evil.test' }, true],
    [{ host, origin: 'http://10.0.0.7:4801' }, true],
    [{ host, origin: 'null' }, true],
    [{ host, origin: '' }, true],
    [{ origin: `http://${host}` }, true],
    [{ host, origin: 'https://evil.test', 'sec-fetch-site': 'same-origin' }, false],
    [{ host, origin: 'null', 'sec-fetch-site': 'none' }, false],
    [{ host, origin: publicUrl, 'sec-fetch-site': 'cross-site' }, true],
  ];
  for (const [headers, foreign] of cases) assert.equal(isForeign(headers, publicUrl), foreign, JSON.stringify(headers));
});

test('wrong content type is 415, an oversized form 413; bad fields are errors at the form', async () => {
  const visitor = site.visitor();
  const json = await visitor.post('/sign-in', {}, { 'content-type': 'application/json' });
  assert.equal(json.status, 415);
  assert.match(json.headers.get('content-type') ?? '', /^text\/html/);
  const long = await visitor.post('/sign-in', { email: 'x'.repeat(16 * 1024) });
  assert.equal(long.status, 413);
  assert.match(long.headers.get('content-type') ?? '', /^text\/html/);
  const nul = await visitor.post('/forgot-password', { email: 'a\0@example.test' });
  assert.equal(nul.status, 400);
  assert.deepEqual(nul.errors, ['Remove line breaks and control characters']);
  const twice = await raw('/forgot-password', 'email=a%40example.test&email=b%40example.test');
  assert.equal(twice.status, 400);
  assert.match(twice.text, /Enter your email address/);
  const unknown = await visitor.post('/forgot-password', {
    email: 'nobody@example.test',
    is_admin: 'true',
    __proto__x: '1',
  });
  assert.equal(unknown.status, 200);
  for (const body of ['__proto__=1&email=a%40example.test', '%', '&&&=', 'email=%FF%FE', 'email[]=x']) {
    const { status } = await raw('/forgot-password', body);
    assert.ok(status === 200 || status === 400, `${body}: ${status}`);
  }
});

test('wrong tokens, return paths and notices never cause a 500 and are never echoed', async () => {
  const odd = [
    '<script>alert(1)</script>',
    '"><b>',
    "'; drop table user --",
    '\0',
    '%00',
    '\u{d800}',
    'x'.repeat(8_000),
    '//evil.test',
    '__proto__',
    'constructor',
  ];
  for (const path of ['/sign-in', '/reset-password', '/verify-email', '/welcome', '/invitation', '/device']) {
    for (const text of odd) {
      for (const name of ['token', 'return_to', 'notice', 'error', 'user_code']) {
        const { status, text: page } = await site
          .visitor()
          .get(`${path}?${new URLSearchParams({ [name]: text }).toString()}`);
        assert.ok(status < 500, `${path} ${name} ${text.slice(0, 40)}: ${status}`);
        assert.doesNotMatch(page, /<script>|"><b>|evil\.test|\[native code\]|\[object/);
      }
    }
  }
  assert.doesNotMatch(site.log(), /"level":(50|60)/);
});

test('a page requested with another method is 405 with Allow', async () => {
  for (const path of ['/sign-in', '/device', '/pages.css']) {
    const { status, headers } = await fetch(site.url + path, { method: 'DELETE' });
    assert.equal(status, 405);
    assert.equal(headers.get('allow'), path === '/pages.css' ? 'GET, HEAD' : 'GET, HEAD, POST');
  }
});

test('the style sheet has a content hash in its URL and is cached as immutable', async () => {
  const { text } = await site.visitor().get('/sign-in');
  const [, path = ''] = /<link rel="stylesheet" href="([^"]+)"/.exec(text) ?? [];
  assert.match(path, /^\/pages\.css\?v=[\w-]{12}$/);
  const style = await site.visitor().get(path);
  assert.equal(style.headers.get('content-type'), 'text/css; charset=utf-8');
  assert.match(style.headers.get('cache-control') ?? '', /immutable/);
  // The style sheet loads nothing.
  assert.doesNotMatch(style.text, /url\(|@import/);
});

/** Sends a raw body. */
async function raw(path: string, body: string): Promise<{ status: number; text: string }> {
  return await new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded', 'content-length': Buffer.byteLength(body) };
    const call = request(site.url + path, { method: 'POST', headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.once('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    call.once('error', reject).end(body);
  });
}
