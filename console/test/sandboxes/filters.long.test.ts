// Filters of the sandbox list in a real browser.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startConsole, type ConsoleSite } from '../browser.ts';

let site: ConsoleSite;
let list: string;
before(async () => {
  site = await startConsole();
  list = `/orgs/${site.api.orgId}/sandboxes`;
  for (const [name, status] of [
    ['web-one', 'ready'],
    ['web-two', 'stopped'],
    ['worker', 'stopped'],
    ['broken', 'failed'],
  ] as const)
    await site.api.makeSandbox(status, { name });
});
after(() => site.close());

const count = 'table tbody tr';

test('search, statuses and order narrow the list, and the address keeps them', async () => {
  const { person, page } = await site.open(list);
  const rows = page.locator(count);
  await page.getByRole('link', { name: 'broken' }).waitFor();
  const asleep = page.getByRole('button', { name: /^Asleep/ });
  assert.match((await asleep.textContent()) ?? '', /2$/);
  await person.look('Sandboxes', 'sandboxes-filters');

  await asleep.click();
  await page.getByRole('link', { name: 'broken' }).waitFor({ state: 'detached' });
  assert.equal(await rows.count(), 2);
  await page.getByRole('searchbox', { name: 'Name or id' }).fill('WEB');
  await page.getByRole('link', { name: 'worker' }).waitFor({ state: 'detached' });
  assert.deepEqual(await page.locator(`${count} th a`).allTextContents(), ['web-two']);
  const { search } = new URL(page.url());
  assert.deepEqual(
    [...new URLSearchParams(search)],
    [
      ['q', 'WEB'],
      ['status', 'stopped'],
    ],
  );

  await page.reload();
  await page.getByRole('link', { name: 'web-two' }).waitFor();
  assert.equal(await rows.count(), 1);
  await page.getByRole('searchbox', { name: 'Name or id' }).fill('nothing');
  await page.getByRole('heading', { name: 'No matching sandboxes' }).waitFor();
  await person.look('Sandboxes', 'sandboxes-no-match');
  await page.getByRole('button', { name: 'Clear the filters' }).click();
  await page.getByRole('link', { name: 'broken' }).waitFor();

  await page.getByRole('combobox', { name: 'Order' }).selectOption('Oldest first');
  await page.locator(`${count}:first-child`).getByRole('link', { name: 'web-one' }).waitFor();
  const project = page.getByRole('combobox', { name: 'Project' });
  await project.selectOption({ index: 1 });
  await page.waitForURL(/[?&]project=/);
  assert.equal(await project.locator('option').first().textContent(), 'All projects');
});
