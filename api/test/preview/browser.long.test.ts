// Previews in a real browser: an app opened by its link and continued by the cookie, and every
// error page, checked by `Person.look`. BERTH_TEST_PICTURES=<folder> keeps the screenshots.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { sendRefusal } from '../../src/preview/page.ts';
import * as refusals from '../../src/preview/refusals.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { goTo, openBrowser, openWithoutCookies, Person } from '../pages/browser.ts';
import { SETTINGS } from '../world/settings.ts';
import { startPreview, type PreviewWorld } from './world.ts';

const PICTURES = process.env['BERTH_TEST_PICTURES'] ?? null;
const PAGES: readonly refusals.Refusal[] = [
  refusals.NO_LINK,
  refusals.INVALID_LINK,
  refusals.EXPIRED,
  refusals.REVOKED,
  refusals.NOT_FOUND,
  refusals.KEY_REFUSED,
  refusals.SIGN_IN_FIRST,
  refusals.CROSS_ORIGIN,
  refusals.BAD_HOST,
  refusals.BAD_FRAMING,
  refusals.NOT_SUPPORTED,
  refusals.asleep(true),
  refusals.asleep(false),
  refusals.STARTING,
  refusals.FAILED,
  refusals.NOT_WOKEN,
  refusals.UNREACHABLE,
  refusals.portRefused(3000),
  refusals.PORT_FORBIDDEN,
  refusals.tooManyConnections('the limit is 4 (BERTH_X)'),
  refusals.tooManyRequests('60 per minute (BERTH_X)', 3),
  refusals.BROKEN_RESPONSE,
  refusals.TOO_SLOW,
  refusals.UPLOAD_STALLED,
  refusals.STOPPING,
  refusals.FAULT,
];
const APP = `<!doctype html>
<html lang="en"><title>app</title><link rel="stylesheet" href="/style.css"><h1>App</h1><script type="module">
  const heard = [];
  heard.push(await (await fetch('/data')).text());
  const socket = new WebSocket('/socket');
  heard.push(await new Promise((resolve, reject) => {
    socket.onopen = () => socket.send('over the socket');
    socket.onmessage = ({ data }) => resolve(data);
    socket.onerror = reject;
  }));
  const events = new EventSource('/events');
  heard.push(await new Promise((resolve) => (events.onmessage = ({ data }) => resolve(data))));
  events.close();
  window.heard = heard;
</script></html>`;

let world: PreviewWorld;
let server: Server;
let browser: Browser;
before(async () => {
  world = await startPreview((request, response) => {
    switch (request.url) {
      case '/':
        return void response.writeHead(200, { 'content-type': 'text/html' }).end(APP);
      case '/style.css':
        return void response.writeHead(200, { 'content-type': 'text/css' }).end('h1 { color: rgb(1, 2, 3) }');
      case '/events':
        return void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: an event\n\n');
      default:
        return void response.end(`${request.url} ${request.headers.cookie ?? 'no cookie'}`);
    }
  });
  server = createServer((request, response) => {
    const page = PAGES[Number(request.url?.slice(1))];
    if (page === undefined) response.writeHead(204).end();
    else sendRefusal(request, response, page, 'req_0');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  browser = await openBrowser(SETTINGS.previewUrl, world.api.url, ['*.previews.example.test']);
});
after(async () => {
  await browser.close();
  server.close();
  server.closeAllConnections();
  await world.close();
});

test('an app opened by a link in a browser loads assets, requests, WebSocket and events', async () => {
  const person = await Person.make(browser, PICTURES);
  await person.open(`http://${world.host}/?token=${world.token}`);
  const heard = await person.page.waitForFunction('window.heard');
  assert.deepEqual(await heard.jsonValue(), ['/data no cookie', 'over the socket', 'an event']);
  assert.equal(await person.page.evaluate('getComputedStyle(document.querySelector("h1")).color'), 'rgb(1, 2, 3)');
  assert.equal(await person.page.evaluate('document.cookie'), '');
  assert.equal(person.page.url(), `http://${world.host}/`, 'without the token');
  // By the cookie alone.
  await person.open(`http://${world.host}/`);
  await person.page.waitForFunction('window.heard');
  assert.deepEqual(person.complaints, []);

  const stranger = await Person.make(browser, PICTURES);
  await stranger.open(`http://${world.host}/`);
  await stranger.look('A link is required', 'preview-stranger');
});

test('a browser that blocks cookies opens a public link and frames of it, without the resources', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-cookies-'));
  const context = await openWithoutCookies(folder, SETTINGS.previewUrl, world.api.url, ['*.previews.example.test']);
  try {
    const page = await context.newPage();
    const statuses: string[] = [];
    page.on('response', (response) => statuses.push(`${response.status()} ${new URL(response.url()).pathname}`));
    const opened = await goTo(page, `http://${world.host}/?token=${world.token}`);
    assert.equal(opened?.status(), 200);
    assert.equal(await page.locator('h1').innerText(), 'App');
    assert.deepEqual(await context.cookies(), []);
    assert.equal(page.url(), `http://${world.host}/?token=${world.token}&token=bpt_asked`);
    await untilTrue('a request of the page is refused', () => statuses.includes('401 /data'));
    const style = await page.evaluate('getComputedStyle(document.querySelector("h1")).color');
    assert.equal(style, 'rgb(0, 0, 0)', 'without the style sheet');
    assert.deepEqual(
      statuses.filter((one) => one.endsWith(' /')),
      ['303 /', '200 /'],
    );
    // A reload takes no redirect.
    assert.equal((await page.reload())?.status(), 200);
    assert.deepEqual(
      statuses.filter((one) => one.endsWith(' /')),
      ['303 /', '200 /', '200 /'],
    );

    const { token } = await world.link(3000, world.sandboxId, { embeddable: true });
    await page.setContent(`<iframe src="http://${world.host}/?token=${token}"></iframe>`);
    assert.equal(await page.frameLocator('iframe').locator('h1').innerText(), 'App');
  } finally {
    await context.close();
    await rm(folder, { recursive: true });
  }
});

test('every error page is accessible', async () => {
  const { port } = server.address() as AddressInfo;
  const person = await Person.make(browser, PICTURES);
  for (const [index, { title }] of PAGES.entries()) {
    await person.open(`http://127.0.0.1:${port}/${index}`);
    await person.look(title, `preview-${index}`);
  }
  const made = Object.values(refusals).filter((value): value is refusals.Refusal => typeof value === 'object');
  for (const one of made) assert.ok(PAGES.includes(one), `${one.title} is not looked at`);
});
