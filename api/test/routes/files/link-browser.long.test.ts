// File links in a real browser, from a page of another origin: uploads and downloads work, and a
// hostile file runs nowhere.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import type { FileLink } from '@berth/contract/files/links.ts';
import { openBrowser } from '../../pages/browser.ts';
import { startApi, type TestApi } from '../../world/api.ts';
import { partsOf } from '../../world/guests/exec-front.ts';
import { makeLink } from './link-world.ts';

/** A page that marks its window, and its opener's, if it runs. */
const HOSTILE = `<!doctype html><script>document.title = 'ran'; (opener ?? parent).postMessage('ran', '*')</script>`;
const SCRIPT = `globalThis.ran = true;`;

let api: TestApi;
let product: Server;
let browser: Browser;
let page: Page;
let sandboxId: string;
let stored = '';
before(async () => {
  api = await startApi({ durable: false });
  ({ id: sandboxId } = await api.makeSandbox('ready'));
  const contents: Record<string, string> = { '/code/page.html': HOSTILE, '/code/script.js': SCRIPT };
  api.front.stream = (_vmId, target) => {
    const query = new URL(target, 'http://host').searchParams;
    const bytes = query.get('bytes');
    if (bytes === null) return partsOf(contents[query.get('path') ?? ''] ?? '', 'a-1');
    return (caller) => {
      caller.on('data', (chunk: Buffer) => {
        stored += chunk.toString();
        if (stored.length === Number(bytes)) caller.end(`{"size":${bytes}}\n`);
      });
    };
  };
  product = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end('<!doctype html><title>product</title><h1>Product</h1>');
  });
  product.listen(0, '127.0.0.1');
  await once(product, 'listening');
  browser = await openBrowser(api.url, api.url);
  page = await (await browser.newContext({ acceptDownloads: true })).newPage();
  await page.goto(`http://127.0.0.1:${(product.address() as AddressInfo).port}/`);
});
after(async () => {
  await browser.close();
  product.close();
  await api.close();
});

const read = (path: string): Promise<FileLink> => makeLink(api, sandboxId, { path, action: 'read' });

/** Runs the body of an async function in the page; it sees `url`. */
const run = async <T>(where: Page, url: string, body: string): Promise<T> =>
  await where.evaluate<T>(`(async (url) => {${body}})(${JSON.stringify(url)})`);

test('a page of another origin uploads a file with progress, and reads one with its headers', async () => {
  const { url } = await makeLink(api, sandboxId, { path: 'in', action: 'write' });
  const sent = await run<{ status: number; progress: number; text: string }>(
    page,
    url,
    `const request = new XMLHttpRequest();
    let progress = 0;
    request.upload.addEventListener('progress', ({ loaded }) => (progress = loaded));
    request.open('PUT', url);
    const done = new Promise((resolve) => request.addEventListener('loadend', resolve));
    request.send(new File(['from the page'], 'a.png', { type: 'image/png' }));
    await done;
    return { status: request.status, progress, text: request.responseText };`,
  );
  assert.deepEqual([sent.status, sent.progress, stored], [200, 13, 'from the page']);
  assert.equal(JSON.parse(sent.text).path, '/code/in');
  const seen = await run(
    page,
    (await read('page.html')).url,
    `const response = await fetch(url, { headers: { range: 'bytes=0-8' } });
    const names = ['content-range', 'etag', 'content-disposition'];
    return { text: await response.text(), headers: names.map((name) => response.headers.get(name)) };`,
  );
  assert.deepEqual(seen, {
    text: '<!doctype',
    headers: [`bytes 0-8/${HOSTILE.length}`, '"a-1"', 'attachment; filename="page.html"'],
  });
});

test('a hostile page is saved, by a click and in a frame, and never shown', async () => {
  const { url } = await read('page.html');
  await run(page, url, `addEventListener('message', () => (document.title = 'a guest ran'));`);
  for (const open of [
    `const link = document.createElement('a'); link.href = url; document.body.append(link); link.click();`,
    `const frame = document.createElement('iframe'); frame.src = url; document.body.append(frame);`,
  ]) {
    const [download] = await Promise.all([page.waitForEvent('download'), run(page, url, open)]);
    assert.equal(download.suggestedFilename(), 'page.html');
    assert.equal(await readFile(await download.path(), 'utf8'), HOSTILE);
    assert.equal(await page.title(), 'product');
  }
});

test('a hostile script does not run, neither on the page nor at the origin of the service', async () => {
  const { url } = await read('script.js');
  const own = await (await browser.newContext()).newPage();
  await own.goto(`${api.url}/sign-in`);
  for (const where of [page, own]) {
    const outcome = await run(
      where,
      url,
      `const script = document.createElement('script');
      script.src = url;
      const settled = new Promise((resolve) => {
        script.addEventListener('load', () => resolve('loaded'));
        script.addEventListener('error', () => resolve('refused'));
      });
      document.head.append(script);
      return [await settled, 'ran' in globalThis];`,
    );
    assert.deepEqual(outcome, ['refused', false]);
  }
  const register = `return await navigator.serviceWorker.register(url).then(() => 'registered', () => 'refused');`;
  assert.equal(await run(own, url, register), 'refused');
});
