// Libraries that create styles or HTML, in a real browser, under the policy that the API serves.
import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { goTo, openBrowser } from '../../api/test/pages/browser.ts';
import { startApi, type TestApi } from '../../api/test/world/api.ts';
import { SETTINGS } from '../../api/test/world/settings.ts';
import { ensureConsole } from '../build/build.ts';
import { builtConsole } from './built.ts';

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; font-src 'self'; " +
  "connect-src 'self' ws://berth.example.test; manifest-src 'self'; frame-src 'none'; base-uri 'none'; " +
  "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

let api: TestApi;
let browser: Browser;
let page: Page;
const complaints: string[] = [];

before(async () => {
  const consoleFolder = await ensureConsole({
    cacheFolder: dirname(builtConsole()),
    signal: AbortSignal.timeout(120_000),
    root: join(import.meta.dirname, 'policy'),
  });
  api = await startApi({ durable: false, settings: { consoleFolder } });
  browser = await openBrowser(SETTINGS.publicUrl, api.url);
  page = await browser.newPage();
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.addInitScript(`
    window.violations = [];
    addEventListener('securitypolicyviolation', ({ violatedDirective, sourceFile, lineNumber }) =>
      violations.push(violatedDirective + ' at ' + sourceFile + ':' + lineNumber));
  `);
  const response = await goTo(page, `${SETTINGS.publicUrl}/console`);
  assert.equal(response?.headers()['content-security-policy'], POLICY);
  await page.locator('#terminal[data-ready]').waitFor();
});
after(async () => {
  await browser.close();
  await api.close();
});

const styleOf = (selector: string, property: string): Promise<string> =>
  page.evaluate(`getComputedStyle(document.querySelector(${JSON.stringify(selector)})).${property}`);
const violations = (): Promise<string[]> => page.evaluate('violations');

test('a violation of the policy is seen by these tests', async () => {
  const other = await browser.newPage();
  await other.addInitScript(`
    window.violations = [];
    addEventListener('securitypolicyviolation', ({ violatedDirective }) => violations.push(violatedDirective));
  `);
  await goTo(other, `${SETTINGS.publicUrl}/console`);
  await other.evaluate(`const style = document.createElement('style');
    style.textContent = 'h1 { color: red }';
    document.head.append(style);
    try {
      document.body.innerHTML = '<b>text</b>';
    } catch {}`);
  assert.deepEqual(await other.evaluate('violations'), ['style-src-elem', 'require-trusted-types-for']);
  await other.close();
});

test('terminal, editor and chart keep the policy and are styled without a style element', async () => {
  assert.equal(await styleOf('h1', 'color'), 'rgb(1, 2, 3)');
  // Theme, cells and scroll bar of the terminal.
  assert.equal(await styleOf('#terminal .xterm-rows', 'color'), 'rgb(238, 238, 238)');
  assert.equal(await styleOf('#terminal .xterm-rows span', 'color'), 'rgb(200, 100, 50)');
  assert.equal(await styleOf('#terminal .xterm-rows span', 'display'), 'inline-block');
  assert.equal(await styleOf('.cm-editor', 'display'), 'flex');
  await page.locator('.cm-panel.cm-search').waitFor();
  assert.match(await styleOf('.uplot', 'width'), /^\d+px$/);
  assert.equal(await page.locator('.uplot canvas').count(), 1);
  await page.locator('.cm-content').click();
  await page.keyboard.type('// typed');
  assert.match(await page.locator('.cm-content').innerText(), /typed/);
  assert.equal(await page.locator('style').count(), 0);
  assert.deepEqual(await violations(), []);
  assert.deepEqual(complaints, []);
});
