// Isolation of previews from pages of other origins, at the gate: rejected requests, the headers of
// responses, links that allow frames, and URLs without tokens. In a browser: siblings.long.test.ts.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { after, before, beforeEach, test } from 'node:test';
import { untilTrue } from '../../../os/test/until.ts';
import { startPreview, type Answer, type PreviewWorld, type RequestOptions } from './world.ts';

const SIBLING = 'http://3000-bbbbbbbbbbbbbbbbbbbbbbbb.previews.example.test';
const DOCUMENT = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' } as const;
const FRAME = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' } as const;

let world: PreviewWorld;
let secure: PreviewWorld;
let asked: { method: string | undefined; url: string | undefined; headers: IncomingHttpHeaders }[];
let respond: (response: ServerResponse) => void;
before(async () => {
  const app: Parameters<typeof startPreview>[0] = (request, response) => {
    asked.push({ method: request.method, url: request.url, headers: request.headers });
    respond(response);
  };
  world = await startPreview(app);
  secure = await startPreview(app, {
    settings: { previewUrl: 'https://previews.example.test', previewCookies: 'proven' },
  });
  asked = [];
  respond = (response) => void response.end('app');
  await world.cookie();
});
after(async () => {
  await world.close();
  await secure.close();
});
beforeEach(() => {
  asked = [];
  respond = (response) => void response.end('app');
});

const codeOf = ({ text }: Answer): string | undefined => JSON.parse(text).error?.code as string | undefined;

async function expectRejected(path: string, options: RequestOptions): Promise<void> {
  const answer = await world.visit(path, options);
  assert.deepEqual([answer.status, codeOf(answer)], [403, 'preview_cross_origin'], JSON.stringify(options));
  assert.equal(answer.headers['set-cookie'], undefined);
  assert.equal(answer.headers['access-control-allow-origin'], undefined);
}

test('pages of other origins are rejected before the sandbox is looked up; the preview’s own are not', async () => {
  for (const headers of [
    { origin: SIBLING },
    { origin: 'null' },
    { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' },
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
    { 'sec-fetch-site': 'same-site', ...DOCUMENT },
    { 'sec-fetch-site': 'cross-site', ...DOCUMENT, referer: `${SIBLING}/` },
    { referer: `${SIBLING}/` },
  ]) {
    await expectRejected('/', { headers });
    // The same with a cookie, a bad one and none.
    await expectRejected('/', { headers: { ...headers, cookie: 'berth_preview=bad' } });
    await expectRejected('/', { headers: { ...headers, cookie: 'none=1' } });
  }
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
    await expectRejected('/', { method, headers: { origin: SIBLING } });
  // A link's token in the URL brings no rights of the page along.
  await expectRejected(`/?token=${world.token}`, { method: 'POST', headers: { origin: SIBLING } });
  assert.deepEqual(asked, []);

  const own = `http://${world.host}`;
  for (const [method, headers] of [
    ['GET', {}],
    ['POST', {}],
    ['POST', { origin: own }],
    ['POST', { origin: own, 'sec-fetch-site': 'same-origin' }],
    ['GET', { 'sec-fetch-site': 'cross-site', ...DOCUMENT }],
    ['GET', { 'sec-fetch-site': 'none', ...DOCUMENT }],
  ] as const)
    assert.equal((await world.visit('/', { method, headers })).text, 'app', JSON.stringify(headers));
  assert.equal(asked.length, 6);
});

test('a WebSocket of another origin is rejected, with a cookie and with a token', async () => {
  for (const path of ['/', `/?token=${world.token}`]) {
    for (const headers of [{ origin: SIBLING }, { origin: 'null' }, { 'sec-fetch-site': 'same-site' }]) {
      const socket = await world.openWebSocket(path, [], headers);
      const [, response] = await once(socket, 'unexpected-response');
      assert.equal(response.statusCode, 403);
      response.resume();
    }
  }
  const socket = await world.webSocket('/', { headers: { origin: `http://${world.host}` } });
  socket.close();
  await once(socket, 'close');
});

test('the origin includes the port of a port forwarder', async () => {
  const host = `${world.host}:8080`;
  assert.equal((await world.visit('/', { host, headers: { origin: `http://${host}` } })).text, 'app');
  await expectRejected('/', { host, headers: { origin: `http://${world.host}` } });
});

test('a response forbids frames, resources and openers of other origins, beside its own policies', async () => {
  const answers: [IncomingHttpHeaders, IncomingHttpHeaders][] = [
    [
      {},
      {
        'content-security-policy': "frame-ancestors 'self'",
        'cross-origin-resource-policy': 'same-origin',
        'cross-origin-opener-policy': 'same-origin-allow-popups',
        'origin-agent-cluster': '?1',
      },
    ],
    [
      {
        'content-security-policy': "default-src 'self'",
        'cross-origin-resource-policy': 'cross-origin',
        'cross-origin-opener-policy': 'unsafe-none',
        'origin-agent-cluster': '?0',
      },
      {
        'content-security-policy': "default-src 'self', frame-ancestors 'self'",
        'cross-origin-resource-policy': 'cross-origin',
        'cross-origin-opener-policy': 'unsafe-none',
        'origin-agent-cluster': '?0',
      },
    ],
    // Browsers ignore X-Frame-Options beside frame-ancestors.
    [{ 'x-frame-options': 'DENY' }, { 'content-security-policy': "frame-ancestors 'none'", 'x-frame-options': 'DENY' }],
    [{ 'x-frame-options': 'sameorigin' }, { 'content-security-policy': "frame-ancestors 'self'" }],
    [
      { 'x-frame-options': 'deny', 'content-security-policy': "frame-ancestors 'self'" },
      { 'content-security-policy': "frame-ancestors 'self', frame-ancestors 'self'" },
    ],
    // Naming a header in Connection removes the app's own alone.
    [
      { connection: 'content-security-policy', 'content-security-policy': "default-src 'none'" },
      { 'content-security-policy': "frame-ancestors 'self'" },
    ],
  ];
  for (const [given, expected] of answers) {
    respond = (response) => void response.writeHead(200, given).end('app');
    const { headers } = await secure.visit('/');
    for (const [name, value] of Object.entries(expected)) assert.equal(headers[name], value, JSON.stringify(given));
  }
  // Elsewhere browsers ignore these two.
  const { headers } = await world.visit('/');
  assert.deepEqual([headers['cross-origin-opener-policy'], headers['origin-agent-cluster']], [undefined, undefined]);
});

test('an embeddable link allows frames of other origins, and nothing else', async () => {
  for (const site of ['same-site', 'cross-site']) {
    const { token } = await secure.link(3000, secure.sandboxId, { embeddable: true });
    const framed = { 'sec-fetch-site': site, ...FRAME };
    const opened = await secure.ask(`/?token=${token}`, { headers: framed });
    assert.equal(opened.status, site === 'cross-site' ? 303 : 200, 'by a redirect, or a page between');
    const cookie = opened.headers['set-cookie']?.[0]?.split(';', 1)[0] ?? '';
    secure.api.secret(cookie.slice(cookie.indexOf('=') + 1), 'the cookie of a preview');
    const shown = await secure.ask('/', { headers: { ...framed, cookie } });
    assert.equal(shown.text, 'app');
    assert.deepEqual(
      ['content-security-policy', 'cross-origin-opener-policy', 'cross-origin-resource-policy'].map(
        (name) => shown.headers[name],
      ),
      [undefined, undefined, 'same-origin'],
    );
    for (const headers of [
      { 'sec-fetch-site': site, 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
      { origin: SIBLING },
    ])
      assert.equal(codeOf(await secure.ask('/', { headers: { ...headers, cookie } })), 'preview_cross_origin');
  }
  // Other links do not, by cookie or token, and wake nothing.
  for (const site of ['same-site', 'cross-site']) {
    const headers = { 'sec-fetch-site': site, ...FRAME };
    assert.equal(codeOf(await secure.visit('/', { headers })), 'preview_cross_origin');
    assert.equal(codeOf(await secure.ask(`/?token=${secure.token}`, { headers })), 'preview_cross_origin');
  }
});

test('an app clears data of its own origin only, unless every preview is a site of its own', async () => {
  for (const [given, expected] of [
    ['"cookies"', undefined],
    ['"executionContexts"', undefined],
    ['"cache", "cookies", "storage", "executionContexts"', '"cache", "storage"'],
    ['"*"', '"cache", "storage"'],
    ['"storage"', '"storage"'],
    ['"future"', undefined],
  ] as const) {
    respond = (response) => void response.writeHead(200, { 'clear-site-data': given }).end('app');
    assert.equal((await secure.visit('/')).headers['clear-site-data'], expected, given);
    assert.equal((await world.visit('/')).headers['clear-site-data'], given, 'BERTH_PREVIEW_COOKIES=all');
  }
});

test('headers for the connection or the operator’s proxies are removed; those for the origin pass', async () => {
  const removed = {
    'alt-svc': 'h3="other.example.test:443"',
    nel: '{"report_to":"app","max_age":86400,"include_subdomains":true,"success_fraction":1}',
    'x-accel-redirect': '/internal/secret',
    'x-sendfile': '/etc/passwd',
    'x-lighttpd-send-file': '/etc/passwd',
    'x-reproxy-url': 'http://127.0.0.1/',
    'proxy-authenticate': 'Basic',
  };
  const kept = {
    'strict-transport-security': 'max-age=86400; includeSubDomains',
    'service-worker-allowed': '/',
    'report-to': '{"group":"app","max_age":86400,"endpoints":[{"url":"https://example.test/"}]}',
    'reporting-endpoints': 'app="https://example.test/"',
    'accept-ch': 'DPR',
    link: '<https://example.test>; rel=preconnect',
    'x-accel-buffering': 'no',
  };
  respond = (response) => void response.writeHead(200, { ...removed, ...kept }).end('app');
  const { headers } = await secure.visit('/');
  for (const name of Object.keys(removed)) assert.equal(headers[name], undefined, name);
  for (const [name, value] of Object.entries(kept)) assert.equal(headers[name], value, name);
});

test('over https an app receives only its own cookies', async () => {
  respond = (response) =>
    void response
      .writeHead(200, { 'set-cookie': ['s=1; Path=/; HttpOnly; Domain=previews.example.test', 't=dark'] })
      .end('app');
  const cookie = await secure.ask(`/?token=${secure.token}`).then(({ headers }) => headers['set-cookie'] ?? []);
  assert.deepEqual(cookie.slice(0, -1), [
    '__Host-berth.s=h.1; Path=/; Secure; HttpOnly',
    '__Host-berth.t=r.dark; Path=/; Secure; HttpOnly',
    't=dark',
  ]);
  const sent = cookie.map((one) => one.split(';', 1)[0]);
  secure.api.secret(sent.at(-1)?.split('=', 2)[1] ?? '', 'the cookie of a preview');
  asked = [];
  await secure.ask('/', { headers: { cookie: ['s=tossed', 'u=tossed', ...sent].join('; ') } });
  assert.equal(asked[0]?.headers.cookie, 's=1; t=dark');

  const socket = await secure.openWebSocket('/', [], { cookie: ['s=tossed', ...sent].join('; ') });
  await once(socket, 'open');
  socket.close();
  await untilTrue('the socket has closed', () => socket.readyState === socket.CLOSED);
});
