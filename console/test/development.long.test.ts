// `npm run console:dev`: the development server in front of a running service.
import assert from 'node:assert/strict';
import { utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { goTo } from '../../api/test/pages/browser.ts';
import { PASSWORD } from '../../api/test/pages/site.ts';
import { untilTrue } from '../../os/test/until.ts';
import { startDevelopment } from '../build/dev.ts';
import { startConsole, type ConsoleSite } from './browser.ts';

/** A style, and the component that uses it, which the page replaces. */
const SOURCE = 'pages/frame/frame.module.css';
const COMPONENT = 'pages/frame/frame.';
const LOAD_MS = 20_000;
/** Then the source is changed again. */
const MESSAGE_MS = 5_000;
const MOST_LOADS = 10;

let site: ConsoleSite;
before(async () => {
  site = await startConsole();
});
after(() => site.close());

/** Loads again while modules are lost: VMs of other tests change the network of the machine. */
async function untilShown(page: Page, text: string): Promise<void> {
  for (let loads = 1; ; loads += 1) {
    try {
      return await page.getByText(text).first().waitFor({ timeout: LOAD_MS });
    } catch (error) {
      if (loads === MOST_LOADS) throw error;
      await page.reload();
    }
  }
}

test('the development server signs in at the service, and sends a changed source without a reload', async () => {
  const { email } = await site.account();
  const server = await startDevelopment(site.url, 0);
  try {
    const page = await site.browser.newPage();
    const sent: string[] = [];
    page.on('websocket', (socket) => socket.on('framereceived', ({ payload }) => sent.push(String(payload))));
    await goTo(page, server.resolvedUrls?.local[0] ?? '');
    await untilShown(page, 'Email address');
    await page.getByLabel('Email address').fill(email);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await untilShown(page, 'You are not a member of any org yet');

    // The server reloads the page for a module that it has not read, as after a cold start.
    let types: string[] = [];
    const isSent = untilTrue('a changed source is sent without a reload', async () => {
      await untilShown(page, 'You are not a member of any org yet');
      sent.length = 0;
      const now = new Date();
      await utimes(join(import.meta.dirname, '../src', SOURCE), now, now);
      await untilTrue('a message', () => sent.some((message) => message.includes(COMPONENT)), MESSAGE_MS).catch(
        () => null,
      );
      types = sent.map((message) => (JSON.parse(message) as { type: string }).type).filter((type) => type !== 'pong');
      return types.includes('update');
    });
    await isSent.catch((error: unknown) => assert.fail(`${String(error)}; the last messages: ${sent.join()}`));
    assert.deepEqual(types, ['update']);
  } finally {
    await server.close();
  }
});
