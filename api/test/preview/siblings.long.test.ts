// A hostile app in a preview against another preview of its visitor, in a real browser: of another
// org, and of another sandbox of the same org. Over https all previews are one site; below
// localhost each is its own, as on a public suffix.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { after, before, beforeEach, test } from 'node:test';
import { splice } from '@berth/protocol/splice.ts';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { WebSocketServer } from 'ws';
import { goTo, openBrowser } from '../pages/browser.ts';
import { startApi, type TestApi } from '../world/api.ts';
import { startTlsFront, type TlsFront } from '../pages/tls-front.ts';

const SECRET = 'the secret of the app';
/** Tried by a hostile page against the origin in its query. Each result is a text. */
const ATTACKS = `<!doctype html><html lang="en"><title>hostile</title><body></body><script type="module">
  const target = new URLSearchParams(location.search).get('target');
  const host = new URL(target).host;
  const within = (promise) => Promise.race([promise, new Promise((resolve) => setTimeout(resolve, 8000, 'nothing'))]);
  const element = (name, change) => within(new Promise((resolve) => {
    const made = Object.assign(document.createElement(name), change);
    made.onload = () => resolve('loaded');
    made.onerror = () => resolve('refused');
    document.body.append(made);
  }));
  const parent = location.hostname.replace(/^[^.]*\\./, '');
  const names = ['session', 'tossed', '__Host-tossed', '__Host-berth.session', '__Host-berth_preview', 'berth_preview'];
  for (const name of names)
    document.cookie = name + '=h.tossed; path=/; domain=' + parent + (location.protocol === 'https:' ? '; secure' : '');
  const result = {};
  const fetched = (options) => fetch(target + '/fetched', { credentials: 'include', ...options })
    .then(async (response) => response.type + ' ' + (await response.text()), () => 'refused');
  result.read = await fetched({});
  result.post = await fetched({ method: 'POST', mode: 'no-cors', body: 'x=1' });
  result.blind = await fetched({ mode: 'no-cors' });
  result.webSocket = await within(new Promise((resolve) => {
    const socket = new WebSocket(target.replace('http', 'ws') + '/socket');
    socket.onmessage = ({ data }) => resolve(data);
    socket.onerror = () => resolve('refused');
  }));
  result.image = await element('img', { src: target + '/image.svg' });
  result.script = await element('script', { src: target + '/script.js' });
  await element('iframe', { src: target + '/framed', name: 'framed' });
  const popup = window.open(target + '/popup');
  result.popup = popup === null ? 'blocked' : 'opened';
  window.popup = popup;
  window.result = result;
</script></html>`;

let asked: { app: string; request: string; cookie: string | undefined }[];

/** The victim's app: takes every request and WebSocket, and allows every origin to read. */
function victimApp(request: IncomingMessage, response: ServerResponse): void {
  // Browsers ask for it with every page, error pages of the preview included.
  if (request.url !== '/favicon.ico')
    asked.push({ app: 'victim', request: `${request.method} ${request.url}`, cookie: request.headers.cookie });
  const { origin } = request.headers;
  if (origin !== undefined) {
    response.setHeader('access-control-allow-origin', origin);
    response.setHeader('access-control-allow-credentials', 'true');
  }
  if (request.url === '/') response.setHeader('set-cookie', ['session=own; Path=/; HttpOnly', 'theme=dark; Path=/']);
  const [type, body] = request.url?.endsWith('.svg')
    ? ['image/svg+xml', '<svg xmlns="http://www.w3.org/2000/svg"/>']
    : request.url?.endsWith('.js')
      ? ['text/javascript', 'window.script = true']
      : ['text/html', `<!doctype html><html lang="en"><title>${SECRET}</title><h1>App</h1></html>`];
  response.writeHead(200, { 'content-type': type }).end(body);
}

interface Stage {
  api: TestApi;
  browser: Browser;
  /** URL with the token of a public link to a sandbox's app. */
  link(sandbox: string, org?: { token: string }, body?: object): Promise<URL>;
  victim: string;
  /** A hostile app's sandbox, and the token of its org. */
  hostile: readonly (readonly [what: string, sandboxId: string, org: { token: string }])[];
  close(): Promise<void>;
}

async function setStage(previewUrl: string): Promise<Stage> {
  const api = await startApi({
    durable: false,
    settings: { previewUrl, previewCookies: previewUrl.startsWith('https:') ? 'proven' : 'all' },
  });
  const servers = [
    createServer(victimApp),
    createServer((request, response) => {
      asked.push({ app: 'hostile', request: request.url ?? '', cookie: request.headers.cookie });
      if (request.url === '/clear') response.setHeader('clear-site-data', '"cookies", "storage", "cache", "*"');
      response.writeHead(200, { 'content-type': 'text/html' }).end(ATTACKS);
    }),
  ] as const;
  new WebSocketServer({ server: servers[0] }).on('connection', (socket, request) => {
    asked.push({ app: 'victim', request: `WebSocket ${request.url}`, cookie: request.headers.cookie });
    socket.send(SECRET);
  });
  for (const server of servers) await listening(server);
  const { id: victim } = await api.makeSandbox('ready');
  const { id: colleague } = await api.makeSandbox('ready');
  const org = await api.makeOrg();
  const { id: stranger } = await api.makeSandbox('ready', { org_id: org.orgId, project_id: org.projectId });
  api.front.stream = async (vmId) => {
    const server = vmId === victim ? servers[0] : servers[1];
    const socket = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    return (caller) => void splice(caller as Socket, socket);
  };
  const front: TlsFront | null = previewUrl.startsWith('https:')
    ? await startTlsFront(Number(new URL(api.url).port))
    : null;
  const names = [`*.${new URL(previewUrl).hostname}`];
  const browser = await openBrowser('http://berth.example.test', front?.url ?? api.url, names);
  return {
    api,
    browser,
    victim,
    hostile: [
      ['of another org', stranger, org],
      ['of the same org', colleague, api],
    ],
    link: async (sandboxId, { token } = api, body = {}) => {
      const made = await api.call('POST', `/v1/sandboxes/${sandboxId}/previews`, {
        token,
        body: { port: 3_000, audience: 'public', ...body },
      });
      const url = new URL(made.body.preview.url);
      api.secret(url.searchParams.get('token') ?? '', 'a token of a preview link');
      return url;
    },
    close: async () => {
      await browser.close();
      front?.close();
      await api.close();
      for (const server of servers) {
        server.closeAllConnections();
        server.close();
      }
    },
  };
}

async function listening(server: Server): Promise<void> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
}

const stages: Record<'one site' | 'a site each', Stage> = {} as never;
before(async () => {
  asked = [];
  stages['one site'] = await setStage('https://previews.example.test');
  stages['a site each'] = await setStage('http://localhost');
});
after(async () => {
  for (const stage of Object.values(stages)) await stage.close();
});
beforeEach(() => {
  asked = [];
});

async function visitor({ browser }: Stage): Promise<{ context: BrowserContext; page: Page }> {
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  const page = await context.newPage();
  return { context, page };
}

for (const kind of ['one site', 'a site each'] as const) {
  for (const [index, what] of ['of another org', 'of the same org'].entries()) {
    test(`a hostile preview ${what} neither reads, drives nor frames another (${kind})`, async () => {
      const stage = stages[kind];
      const [, sandboxId, org] = stage.hostile[index] ?? assert.fail();
      const { context, page } = await visitor(stage);
      const victim = await stage.link(stage.victim);
      await goTo(page, victim.href);
      assert.equal(await page.title(), SECRET);
      assert.equal(page.url(), `${victim.origin}/`);
      await goTo(page, `${victim.origin}/own`);
      assert.deepEqual(
        asked.map(({ request, cookie }) => [request, cookie]),
        [
          ['GET /', undefined],
          ['GET /own', 'session=own; theme=dark'],
        ],
      );

      asked = [];
      const hostile = await stage.link(sandboxId, org);
      hostile.searchParams.set('target', victim.origin);
      const popped = context.waitForEvent('page');
      await goTo(page, hostile.href);
      const result = await page.waitForFunction('window.result', null, { timeout: 60_000 });
      assert.deepEqual(await result.jsonValue(), {
        read: 'refused',
        post: 'opaque ',
        blind: 'opaque ',
        webSocket: 'refused',
        image: 'refused',
        script: 'refused',
        popup: 'opened',
      });
      const framed = page.frame('framed');
      assert.ok(framed !== null);
      assert.notEqual(await framed.title().catch(() => 'an error page of the browser'), SECRET);
      const popup = await popped;
      await popup.waitForLoadState();
      assert.equal(await popup.locator('h1').innerText(), 'This request came from another page');
      assert.deepEqual(
        asked.filter(({ app }) => app === 'victim'),
        [],
      );

      // The visitor goes on by a click, and by the address bar; the cookies are the app's own.
      await popup.getByRole('link', { name: 'Open the preview' }).click();
      await popup.waitForURL(`${victim.origin}/popup`);
      await popup.getByRole('heading', { name: 'App' }).waitFor();
      await goTo(page, `${victim.origin}/typed`);
      assert.equal(await page.title(), SECRET);
      const kept = asked.filter(({ app }) => app === 'victim');
      assert.deepEqual(
        kept.map(({ request, cookie }) => [request, cookie?.split('; ').toSorted().join('; ')]),
        [
          ['GET /popup', 'session=own; theme=dark'],
          ['GET /typed', 'session=own; theme=dark'],
        ],
      );
      await context.close();
    });
  }

  test(`a preview that clears its site's data leaves the cookies of another (${kind})`, async () => {
    const stage = stages[kind];
    const [, sandboxId, org] = stage.hostile[0] ?? assert.fail();
    const { context, page } = await visitor(stage);
    const victim = await stage.link(stage.victim);
    await goTo(page, victim.href);
    const namesOf = async (): Promise<string[]> =>
      (await context.cookies(victim.origin)).map(({ name }) => name).toSorted();
    const names = await namesOf();
    assert.ok(names.some((name) => name.endsWith('berth_preview')) && names.includes('theme'), names.join());
    const hostile = await stage.link(sandboxId, org);
    hostile.pathname = '/clear';
    const answer = await goTo(page, hostile.href);
    assert.match((await answer?.allHeaders())?.['clear-site-data'] ?? '', /"storage"/);
    assert.deepEqual(await namesOf(), names);
    await goTo(page, `${victim.origin}/after`);
    assert.equal(await page.title(), SECRET);
    await context.close();
  });

  test(`a link with a token opens from a sibling, and has no opener (${kind})`, async () => {
    const stage = stages[kind];
    const [, sandboxId, org] = stage.hostile[0] ?? assert.fail();
    const { context, page } = await visitor(stage);
    const victim = await stage.link(stage.victim);
    const hostile = await stage.link(sandboxId, org);
    await goTo(page, hostile.href);
    assert.equal(await page.title(), 'hostile');
    const popped = context.waitForEvent('page');
    await page.evaluate(`void (window.popup = window.open(${JSON.stringify(victim.href)}))`);
    const popup = await popped;
    await popup.getByRole('heading', { name: 'App' }).waitFor();
    assert.equal(popup.url(), `${victim.origin}/`, 'without the token');
    assert.equal(await popup.evaluate('window.opener'), null);
    await page.waitForFunction('window.popup.closed');
    await context.close();
  });
}

test('an embeddable link opens in a frame of another origin, which still cannot read or drive the app', async () => {
  const stage = stages['one site'];
  const [, sandboxId, org] = stage.hostile[0] ?? assert.fail();
  const { context, page } = await visitor(stage);
  const victim = await stage.link(stage.victim, stage.api, { embeddable: true });
  const hostile = await stage.link(sandboxId, org);
  hostile.searchParams.set('target', victim.origin);
  await goTo(page, hostile.href);
  await page.waitForFunction('window.result', null, { timeout: 60_000 });
  asked = [];
  await page.evaluate(`void document.body.append(
    Object.assign(document.createElement('iframe'), { src: ${JSON.stringify(victim.href)}, name: 'shown' }))`);
  await page.frameLocator('iframe[name=shown]').getByRole('heading', { name: 'App' }).waitFor();
  const shown = page.frame('shown');
  assert.equal(shown?.url(), `${victim.origin}/`);
  assert.equal(await shown?.evaluate(`fetch('/own').then(({ status }) => status)`), 200);
  await assert.rejects(page.evaluate(`document.querySelector('iframe[name=shown]').contentDocument.title`));
  assert.equal(
    await page.evaluate(
      `fetch(${JSON.stringify(victim.origin)}, { credentials: 'include' }).then(() => 'read', () => 'refused')`,
    ),
    'refused',
  );
  assert.deepEqual(
    asked.filter(({ app }) => app === 'victim').map(({ request }) => request),
    ['GET /', 'GET /own'],
  );
  await context.close();
});
