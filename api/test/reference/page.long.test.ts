// The reference page in a real browser: it renders, loads no foreign resources, obeys its CSP and
// fits a phone. BERTH_TEST_PICTURES=<folder> keeps the screenshots.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { publishedDocument } from '@berth/contract/document/openapi.ts';
import type { Browser, Page } from 'playwright-core';
import { startApi, type TestApi } from '../world/api.ts';
import { openBrowser } from '../pages/browser.ts';
import { SETTINGS } from '../world/settings.ts';

const { publicUrl } = SETTINGS;
const PICTURES = process.env['BERTH_TEST_PICTURES'];
const VENDOR = join(import.meta.dirname, '../../src/reference/vendor');

let api: TestApi;
let browser: Browser;
before(async () => {
  api = await startApi({ durable: false });
  browser = await openBrowser(publicUrl, api.url);
});
after(async () => {
  await browser.close();
  await api.close();
});

interface Visit {
  page: Page;
  asked: string[];
  complaints: string[];
}

async function visit(width: number, height: number): Promise<Visit> {
  const page = await (await browser.newContext({ viewport: { width, height } })).newPage();
  const asked: string[] = [];
  const complaints: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    // Chromium warns that plain http is not trustworthy.
    if (message.type() === 'error' && !message.text().includes('Cross-Origin-Opener-Policy header has been ignored'))
      complaints.push(message.text());
  });
  await page.goto(`${publicUrl}/docs`);
  await page.getByRole('heading', { name: 'Creates a sandbox' }).waitFor();
  return { page, asked, complaints };
}

for (const [width, height] of [
  [390, 844],
  [1280, 800],
] as const) {
  test(`at ${width} px the reference shows every operation, fits, and loads only own resources`, async () => {
    const { page, asked, complaints } = await visit(width, height);
    const headings = await page.getByRole('heading', { level: 2 }).allInnerTexts();
    for (const operations of Object.values(publishedDocument().paths)) {
      for (const { summary } of Object.values(operations).filter(
        (one): one is { summary: string } => typeof one === 'object' && one !== null && 'summary' in one,
      )) {
        assert.ok(
          headings.some((heading) => heading.trim().startsWith(summary)),
          `no heading "${summary}"`,
        );
      }
    }
    const wide = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
    if (PICTURES !== undefined) {
      await mkdir(PICTURES, { recursive: true });
      await page.screenshot({ path: join(PICTURES, `reference-${width}.png`) });
      await page.getByRole('heading', { name: 'Creates a sandbox' }).scrollIntoViewIfNeeded();
      await page.screenshot({ path: join(PICTURES, `reference-${width}-operation.png`) });
    }
    assert.equal(wide, 0, `it scrolls sideways by ${String(wide)} px`);
    const elsewhere = asked.filter(
      (url) => !url.startsWith(`${publicUrl}/`) && !url.startsWith('data:') && !url.startsWith(`blob:${publicUrl}/`),
    );
    assert.deepEqual(elsewhere, []);
    assert.ok(asked.includes(`${publicUrl}/v1/openapi.json`));
    assert.deepEqual(complaints, []);
  });
}

test("the reference's search finds an operation", async () => {
  const { page, complaints } = await visit(1280, 800);
  await page.getByPlaceholder('Search...').fill('renew');
  await page.getByRole('search').getByText('Renews an ephemeral sandbox').waitFor();
  assert.deepEqual(complaints, []);
});

test('the renderer is the vendored file and has its licence beside it', () => {
  const [, sha256] = /^sha256 ([0-9a-f]{64})$/m.exec(readFileSync(join(VENDOR, 'redoc.version'), 'utf8')) ?? [];
  const renderer = readFileSync(join(VENDOR, 'redoc.standalone.js'));
  assert.equal(createHash('sha256').update(renderer).digest('hex'), sha256);
  assert.match(readFileSync(join(VENDOR, 'redoc.LICENSE.txt'), 'utf8'), /^The MIT License/);
});
