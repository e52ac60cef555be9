// An update of the service while the page is open, in a real browser.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { untilTrue } from '../../os/test/until.ts';
import { addressOf, startConsole, type ConsoleSite } from './browser.ts';

let site: ConsoleSite;
let list: string;
before(async () => {
  site = await startConsole();
  list = `/orgs/${site.api.orgId}/sandboxes`;
});
after(() => site.close());

/** Loads of the page since the call. */
function loads(page: Page): { count: number } {
  const found = { count: 0 };
  page.on('load', () => (found.count += 1));
  return found;
}

async function lose(page: Page, part: string): Promise<void> {
  await page.route(`**/console/assets/${part}-*.js`, (route) => route.fulfill({ status: 404, body: 'gone' }));
}

test('a part that is gone reloads the page once, then is reported without a loop', async () => {
  const { person, page } = await site.open(list);
  await page.getByText('No sandboxes yet').waitFor();
  const found = loads(page);
  await lose(page, 'members');
  await page.getByRole('link', { name: 'Members' }).click();
  await page.waitForEvent('load');
  // The router of the new page has the address of the old one.
  await page.getByText('No sandboxes yet').waitFor();
  await page.getByRole('link', { name: 'Members' }).click();
  await page.getByRole('heading', { name: 'A part of the console is missing' }).waitFor();
  await page.getByRole('link', { name: 'Projects' }).click();
  await page.getByRole('heading', { name: 'Projects' }).waitFor();
  await person.look('Projects', 'part-missing');
  await lose(page, 'palette');
  const lost = page.waitForResponse('**/console/assets/palette-*.js');
  await page.keyboard.press('Control+k');
  await lost;
  assert.equal(found.count, 1);
  await page.goto(addressOf(`/orgs/${site.api.orgId}/members`));
  await page.getByRole('heading', { name: 'A part of the console is missing' }).waitFor();
  assert.equal(found.count, 2);
});

test('a part that is gone does not reload a page with typed text', async () => {
  const { page } = await site.open(`${list}/new`);
  await page.getByLabel('Name').fill('a draft');
  const found = loads(page);
  await lose(page, 'palette');
  await page.keyboard.press('Control+k');
  const banner = page.getByRole('status').filter({ hasText: 'A part of the console did not load' });
  await banner.waitFor();
  await page.getByRole('button', { name: 'Reload' }).click();
  await page.getByText('Text that you typed on this page would be lost.').waitFor();
  await page.getByRole('button', { name: 'Cancel' }).click();
  assert.equal(await page.getByLabel('Name').inputValue(), 'a draft');
  assert.equal(found.count, 0);
  await page.getByRole('button', { name: 'Reload' }).click();
  await page.getByRole('button', { name: 'Reload anyway' }).click();
  await page.waitForEvent('load');
  assert.equal(await page.getByLabel('Name').inputValue(), '');
});

const { version: VERSION } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')) as {
  version: string;
};

/** Opens the list; the feed fails once, and the service has another version afterwards. */
async function update(page: Page, version: string): Promise<void> {
  // The requests of the first page end.
  await page.goto('about:blank');
  let now = VERSION;
  const answered: string[] = [];
  await page.route('**/v1/service', async (route) => {
    const asked = now;
    const response = await route.fetch({ url: `${site.url}/v1/service` });
    await route.fulfill({ response, json: { ...((await response.json()) as object), version: asked } });
    answered.push(asked);
  });
  await page.route('**/activity/follow?*since=*', async (route) => {
    if (now === version || !answered.includes(now)) return await route.continue();
    now = version;
    return await route.fulfill({ status: 503, json: { error: { code: 'shutting_down', message: 'restarting' } } });
  });
  await page.goto(addressOf(list));
  await untilTrue('the version is read again', () => answered.includes(version));
}

test('a newer version of the service is offered, and an older one is not', async () => {
  const { person, page } = await site.open('/me');
  await update(page, '1000.0.0');
  await page.getByText('Berth was updated to 1000.0.0. Reload the page to use it.').waitFor();
  await person.look('Sandboxes', 'updated');
  const loaded = page.waitForEvent('load');
  await page.getByRole('button', { name: 'Reload' }).click();
  await loaded;
  const back = await site.open('/me');
  await update(back.page, '0.0.1');
  await back.page.getByText('No sandboxes yet').waitFor();
  assert.equal(await back.page.getByText('Berth was updated').count(), 0);
});

test('a page of an older build than its service offers the update at once', async () => {
  const { page } = await site.open('/me');
  await page.route('**/v1/service', async (route) => {
    const response = await route.fetch({ url: `${site.url}/v1/service` });
    await route.fulfill({ response, json: { ...((await response.json()) as object), version: '1000.0.0' } });
  });
  await page.reload();
  await page.getByText('Berth was updated to 1000.0.0. Reload the page to use it.').waitFor();
});
