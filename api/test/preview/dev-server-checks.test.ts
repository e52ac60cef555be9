// Checks of development servers against requests under other names, with their default settings and
// a public preview host: Vite itself, and the rules of others, written down here.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http, { type IncomingHttpHeaders } from 'node:http';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createServer, type ViteDevServer } from 'vite';
import { startPreview, type PreviewWorld } from './world.ts';

type Check = (headers: IncomingHttpHeaders, method: string) => boolean;

const nameOf = (host: string | undefined): string => (host ?? '').replace(/:\d+$/, '');
const isLocal = (name: string): boolean => name === 'localhost' || name.endsWith('.localhost') || name === '127.0.0.1';
const hostOf = (url: string | undefined): string => (url === undefined ? '' : new URL(url).host);

/** Whether the server takes the request. */
const CHECKS: Readonly<Record<string, Check>> = {
  // `isValidHost` and `isSameOrigin` of its Server.js.
  'webpack-dev-server': ({ host, origin }) =>
    isLocal(nameOf(host)) && (origin === undefined || (isLocal(nameOf(hostOf(origin))) && hostOf(origin) === host)),
  // ALLOWED_HOSTS with DEBUG, and `_origin_verified` of CsrfViewMiddleware.
  Django: ({ host, origin }, method) =>
    isLocal(nameOf(host)) && (method === 'GET' || origin === undefined || origin === `http://${host}`),
  // HostAuthorization, and `valid_request_origin?` of RequestForgeryProtection.
  Rails: ({ host, origin, 'x-forwarded-host': forwarded, 'x-forwarded-proto': proto }, method) =>
    [host, forwarded].every((one) => one === undefined || isLocal(nameOf(String(one)))) &&
    (method === 'GET' ||
      origin === undefined ||
      origin === `${String(proto ?? 'http')}://${String(forwarded ?? host)}`),
  // `blockCrossSite` of `next dev`, and the check of a server action.
  Next: ({ host, origin, 'x-forwarded-host': forwarded }, method) =>
    (origin === undefined || isLocal(nameOf(hostOf(origin)))) &&
    (method === 'GET' || hostOf(origin) === String(forwarded ?? host)),
  // `checkOrigin` of Astro, and `csrf` of SvelteKit, whose other check is Vite's.
  Astro: ({ host, origin }, method) => isLocal(nameOf(host)) && (method === 'GET' || origin === `http://${host}`),
};

let check: Check;
let world: PreviewWorld;
let folder: string;
let vite: ViteDevServer;
let server: http.Server;
before(async () => {
  const settings = { previewUrl: 'https://previews.example.test' };
  world = await startPreview(
    (request, response) => {
      const isTaken = check(request.headers, request.method ?? '');
      // As apps redirect after a form, to their own address.
      const location = `http://${request.headers.host}/after?from=${request.headers.referer}`;
      response.writeHead(isTaken ? 303 : 403, { location }).end();
    },
    { settings },
  );
  folder = await mkdtemp(join(tmpdir(), 'berth-vite-'));
  await writeFile(join(folder, 'index.html'), '<title>of Vite</title><script type="module" src="/main.ts"></script>');
  await writeFile(join(folder, 'main.ts'), 'const text: string = "compiled"; document.title = text;\n');
  server = http.createServer((request, response) => vite.middlewares(request, response));
  vite = await createServer({
    root: folder,
    configFile: false,
    logLevel: 'silent',
    cacheDir: join(folder, 'cache'),
    server: { middlewareMode: true, hmr: { server }, watch: null },
    optimizeDeps: { noDiscovery: true },
  });
  await world.serve(5173, server);
});
after(async () => {
  await vite?.close();
  await world?.close();
  await rm(folder, { recursive: true, force: true });
});

for (const [name, rule] of Object.entries(CHECKS)) {
  test(`${name} takes pages and forms of a public preview with its default settings`, async () => {
    check = rule;
    const origin = `https://${world.host}`;
    const own = { origin, referer: `${origin}/form?a=1`, 'sec-fetch-site': 'same-origin' };
    const { origin: _, ...navigation } = own;
    const page = await world.visit('/', { headers: navigation });
    const form = await world.visit('/', { method: 'POST', headers: own });
    assert.deepEqual([page.status, form.status], [303, 303]);
    assert.equal(form.headers.location, `${origin}/after?from=http://localhost:3000/form?a=1`);
    // The rule itself refuses other names.
    const { host } = world;
    assert.equal(rule({ host, origin, 'x-forwarded-host': host, 'x-forwarded-proto': 'https' }, 'POST'), false);
  });
}

test('Vite serves a public preview, compiled, and accepts the WebSocket of its page', async () => {
  const { host, token } = await world.link(5173);
  const program = { host, headers: { 'x-berth-preview-token': token } };
  assert.match((await world.ask('/', program)).text, /of Vite.*\/@vite\/client|\/@vite\/client.*of Vite/s);
  assert.match((await world.ask('/main.ts', program)).text, /const text = "compiled"/);
  const opened = await world.ask(`/?token=${token}`, { host });
  const cookie = opened.headers['set-cookie']?.[0]?.split(';', 1)[0] ?? '';
  world.api.secret(cookie.slice(cookie.indexOf('=') + 1), 'the cookie of a preview');
  const { webSocketToken } = vite.config;
  const socket = await world.openWebSocket(`/?token=${webSocketToken}`, ['vite-hmr'], {
    cookie,
    host,
    origin: `https://${host}`,
    'sec-fetch-site': 'same-origin',
  });
  const [message] = await once(socket, 'message');
  assert.deepEqual(JSON.parse(String(message)), { type: 'connected' });
  socket.terminate();
});

test('Vite itself refuses the public name of a preview', async () => {
  const { port } = server.address() as AddressInfo;
  const request = http.get({ host: '127.0.0.1', port, path: '/', headers: { host: world.host } });
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  response.resume();
  assert.equal(response.statusCode, 403);
});
