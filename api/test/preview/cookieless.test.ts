// Public links without cookies: programs, link previewers, and browsers that keep none. In a
// browser: browser.long.test.ts.
import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { after, before, beforeEach, test } from 'node:test';
import { startPreview, type Answer, type PreviewWorld } from './world.ts';

const NAVIGATION = { accept: 'text/html', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' } as const;
/** Sent by a browser on plain http to a name other than localhost. */
const PLAIN_NAVIGATION = { accept: 'text/html', 'upgrade-insecure-requests': '1' } as const;
const SIBLING = 'http://3000-bbbbbbbbbbbbbbbbbbbbbbbb.previews.example.test';

let world: PreviewWorld;
let asked: string[];
let respond: (request: IncomingMessage, response: ServerResponse) => void;
before(async () => {
  world = await startPreview((request, response) => {
    asked.push(`${request.method} ${request.url} ${request.headers.referer ?? ''}`.trim());
    respond(request, response);
  });
  asked = [];
  respond = (_request, response) => void response.end('app');
  await world.cookie();
});
after(() => world.close());
beforeEach(() => {
  asked = [];
  respond = (_request, response) => void response.end('app');
});

interface Journey {
  answer: Answer;
  /** Status and address of each redirect. */
  hops: string[];
}

/** Follows redirects like `fetch`, keeping cookies or not. */
async function follow(path: string, headers: object, { keepsCookies = false } = {}): Promise<Journey> {
  const hops: string[] = [];
  let cookie: string | undefined;
  let target = path;
  for (;;) {
    const answer = await world.ask(target, { headers: { ...headers, ...(cookie === undefined ? {} : { cookie }) } });
    if (keepsCookies) cookie = answer.headers['set-cookie']?.[0]?.split(';', 1)[0] ?? cookie;
    const { location } = answer.headers;
    if (location === undefined || hops.length === 5) return { answer, hops };
    const url = new URL(location, `http://${world.host}${target}`);
    assert.equal(url.host, world.host);
    // Byte for byte where the preview made it.
    target = location.startsWith(url.origin) ? location.slice(url.origin.length) : url.pathname + url.search;
    hops.push(`${answer.status} ${target.replaceAll(world.token, 'TOKEN')}`);
  }
}

test('a request that is no navigation of a browser gets the app at the URL with the token', async () => {
  for (const [method, headers] of [
    ['GET', {}],
    ['GET', { accept: '*/*' }],
    ['GET', { accept: 'text/html,application/xhtml+xml' }],
    ['HEAD', { accept: 'text/html' }],
    ['GET', { accept: 'text/html', 'sec-fetch-mode': 'cors' }],
    ['POST', { accept: 'text/html' }],
  ] as const) {
    const answer = await world.ask(`/x?token=${world.token}`, { method, headers });
    assert.deepEqual([answer.status, answer.text], [200, method === 'HEAD' ? '' : 'app'], JSON.stringify(headers));
    assert.equal(answer.headers['cache-control'], 'no-store');
  }
  assert.deepEqual(new Set(asked), new Set(['GET /x', 'HEAD /x', 'POST /x']));
});

test('a browser that keeps no cookie is asked once, then gets the app at the URL with the token', async () => {
  for (const headers of [NAVIGATION, PLAIN_NAVIGATION, { ...NAVIGATION, 'sec-fetch-site': 'none' }]) {
    asked = [];
    const { answer, hops } = await follow(`//a/%2e?x=1&token=${world.token}&y`, headers);
    assert.deepEqual(hops, ['303 //a/%2e?x=1&y&token=TOKEN&token=bpt_asked']);
    assert.equal(answer.text, 'app');
    assert.deepEqual(
      [answer.headers['cache-control'], answer.headers['referrer-policy']],
      ['no-store', 'same-origin'],
      'the token reaches neither a cache nor another origin',
    );
    assert.deepEqual(asked, ['GET //a/%2e?x=1&y']);
  }
  // A cookie of another link does not count.
  const other = await world.link(3000);
  const first = await world.ask(`/?token=${other.token}`, { headers: NAVIGATION });
  const cookie = first.headers['set-cookie']?.[0]?.split(';', 1)[0] ?? '';
  world.api.secret(cookie.slice(cookie.indexOf('=') + 1), 'the cookie of a preview');
  const { answer, hops } = await follow(`/?token=${world.token}`, { ...NAVIGATION, cookie });
  assert.deepEqual([answer.text, hops.length], ['app', 1]);
});

test('a browser that keeps the cookie is redirected to the URL without the token', async () => {
  for (const headers of [NAVIGATION, PLAIN_NAVIGATION]) {
    asked = [];
    const { answer, hops } = await follow(`/x?y=1&token=${world.token}`, headers, { keepsCookies: true });
    assert.deepEqual(hops, ['303 /x?y=1&token=TOKEN&token=bpt_asked', '303 /x?y=1']);
    assert.equal(answer.text, 'app');
    assert.equal(answer.headers['referrer-policy'], undefined);
    assert.deepEqual(asked, ['GET /x?y=1']);
  }
  // With the cookie of an earlier visit at once.
  const { headers, status } = await world.visit(`/x?token=${world.token}`, { headers: NAVIGATION });
  assert.deepEqual([status, headers.location], [303, `http://${world.host}/x`]);
  assert.deepEqual([headers['cache-control'], headers['referrer-policy']], ['no-store', 'no-referrer']);
});

test('a browser from a sibling gets a page between, so that the redirect has no sibling as its sender', async () => {
  const headers = { ...NAVIGATION, 'sec-fetch-site': 'same-site', referer: `${SIBLING}/` };
  const forwarded = await world.ask(`/x?token=${world.token}`, { headers });
  const asking = `http://${world.host}/x?token=${world.token}&token=bpt_asked`;
  assert.deepEqual([forwarded.status, forwarded.headers.refresh], [200, `0; url=${asking}`]);
  assert.match(forwarded.headers['set-cookie']?.[0] ?? '', /^berth_preview=[^;]+;.*HttpOnly/i);
  assert.equal(forwarded.headers['referrer-policy'], 'no-referrer');
  assert.equal(
    (await world.visit(`/x?token=${world.token}`, { headers })).headers['refresh'],
    `0; url=http://${world.host}/x`,
  );
  assert.deepEqual(asked, []);
});

test('the token stays with a visitor without cookies through redirects of the app, on its own origin', async () => {
  respond = (request, response) => {
    if (request.url === '/') response.writeHead(302, { location: '/en?x=1' }).end();
    else if (request.url === '/away') response.writeHead(302, { location: 'https://example.com/' }).end();
    else response.end('app');
  };
  for (const headers of [{}, NAVIGATION]) {
    const { answer, hops } = await follow(`/?token=${world.token}`, headers);
    assert.equal(answer.text, 'app', hops.join());
    assert.ok(hops.includes('302 /en?x=1&token=TOKEN'), hops.join());
  }
  assert.equal((await world.ask(`/away?token=${world.token}`)).headers.location, 'https://example.com/');
  // The cookie makes it unnecessary.
  assert.equal((await world.visit('/')).headers.location, '/en?x=1');
  assert.equal((await world.visit(`/?token=${world.token}`)).headers.location, '/en?x=1');
});

test('resources of a page without cookies are 401, and the app never sees the token', async () => {
  const referer = `http://${world.host}/?token=${world.token}&token=bpt_asked`;
  const own = { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'no-cors', referer };
  const { status, text } = await world.ask('/app.js', { headers: own });
  assert.deepEqual([status, JSON.parse(text).error.code], [401, 'preview_link_required']);
  // With the token in their own URL they open.
  assert.equal((await world.ask(`/app.js?token=${world.token}`, { headers: own })).text, 'app');
  assert.deepEqual(asked, ['GET /app.js http://localhost:3000/']);
});

test('redirects of the app to its own port on loopback lead to the preview', async () => {
  const own = `http://${world.host}`;
  for (const [given, expected] of [
    [{ location: 'http://localhost:3000/login?x' }, { location: `${own}/login?x` }],
    [{ location: 'https://127.0.0.1:3000/' }, { location: `${own}/` }],
    [{ location: 'http://localhost:3001/' }, { location: 'http://localhost:3001/' }],
    [{ 'content-location': 'http://[::1]:3000/a' }, { 'content-location': `${own}/a` }],
    [{ refresh: '0; url=http://0.0.0.0:3000/a' }, { refresh: `0; url=${own}/a` }],
  ] as const) {
    respond = (_request, response) => void response.writeHead(302, given).end();
    const { headers } = await world.visit('/');
    for (const [name, value] of Object.entries(expected)) assert.equal(headers[name], value);
  }
  // To a port forwarder of the visitor, too.
  respond = (_request, response) => void response.writeHead(302, { location: 'http://localhost:3000/a' }).end();
  const host = `${world.host}:8080`;
  assert.equal((await world.visit('/', { host })).headers.location, `http://${host}/a`);
  const programs = { 'x-berth-preview-host': world.host, 'x-berth-preview-token': world.token };
  const byHeader = await world.ask('/', { host: '127.0.0.1', headers: programs });
  assert.equal(byHeader.headers.location, `${own}/a`);
});
