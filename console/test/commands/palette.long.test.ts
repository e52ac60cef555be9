// Command palette and shortcuts in a real browser.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { insertMembership } from '../../../api/src/store/people/identity.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { addressOf, copySandbox, HARMLESS, HOSTILE, startConsole, type ConsoleSite } from '../browser.ts';

let site: ConsoleSite;
let list: string;
let sandboxId: string;
before(async () => {
  site = await startConsole();
  list = `/orgs/${site.api.orgId}/sandboxes`;
  ({ id: sandboxId } = await site.api.makeSandbox('ready', { name: 'api-review' }));
  await site.api.makeSandbox('ready', { name: HOSTILE });
});
after(() => site.close());

const field = (page: Page) => page.getByRole('combobox', { name: 'Command, page, or sandbox by name or id' });
const results = (page: Page) => page.getByRole('listbox', { name: 'Results' });
const option = (page: Page, name: string | RegExp) => results(page).getByRole('option', { name });

async function openPalette(page: Page): Promise<void> {
  await page.locator('h1').waitFor();
  await page.keyboard.press('Control+k');
  await field(page).waitFor();
}

const active = (page: Page): Promise<string | null> =>
  results(page).getByRole('option', { selected: true }).textContent();

test('the palette opens by key and button, moves by arrows, and gives the focus back', async () => {
  const { person, page } = await site.open(list);
  const button = page.getByRole('button', { name: /^Search/ });
  const loaded: string[] = [];
  page.on('request', (request) => loaded.push(request.url()));
  await button.click();
  await field(page).waitFor();
  assert.ok(
    loaded.some((url) => /\/palette-[\w-]+\.js$/.test(url)),
    'the palette is a chunk of its own',
  );
  await person.look('Sandboxes', 'palette');
  assert.equal(await page.evaluate('document.activeElement.getAttribute("role")'), 'combobox');
  const first = await active(page);
  await page.keyboard.press('ArrowDown');
  assert.notEqual(await active(page), first);
  const described = await field(page).getAttribute('aria-activedescendant');
  assert.equal(await page.locator(`[id="${described ?? ''}"]`).textContent(), await active(page));
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowUp');
  assert.equal(await active(page), await results(page).getByRole('option').last().textContent());
  await page.keyboard.press('Escape');
  await field(page).waitFor({ state: 'detached' });
  assert.equal(await page.evaluate('document.activeElement.innerText.startsWith("Search")'), true);
  await openPalette(page);
  await field(page).fill('mem');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Members' }).waitFor();
  await page.locator('h1:focus').waitFor();
});

test('three letters find a sandbox among 10,000, whose names are shown as text', async () => {
  await copySandbox(site, sandboxId, 'batch-job-', 10_000);
  const { person, page } = await site.open(list);
  const asked: string[] = [];
  page.on('request', (request) => {
    const q = new URL(request.url()).searchParams.get('q');
    if (q !== null) asked.push(q);
  });
  await openPalette(page);
  // Types three letters at once: no timer of the page runs between two of them.
  await page.evaluate("for (const letter of 'gnp') document.execCommand('insertText', false, letter)");
  await option(page, HARMLESS).waitFor();
  assert.deepEqual(asked, ['gnp'], 'a request per pause, not per key');
  assert.equal(await page.locator('img').count(), 0);
  await person.look('Sandboxes', 'palette-hostile');
  await field(page).fill('batch-job');
  await option(page, /^batch-job-\d+ ?sbx_/)
    .first()
    .waitFor();
  assert.equal(await option(page, /^batch-job-/).count(), 8);
  await field(page).fill(sandboxId.slice(0, 12));
  await option(page, /^api-review/).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'api-review' }).waitFor();
  await openPalette(page);
  await field(page).fill('batch-job-99');
  await option(page, 'All sandboxes with “batch-job-99”').click();
  await page.waitForURL(addressOf(`${list}?q=batch-job-99`));
});

test('a slow response of an older query is canceled, and never shown', async () => {
  const { page } = await site.open('/me');
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => (release = resolve));
  const canceled: string[] = [];
  page.on('requestfailed', (request) => canceled.push(new URL(request.url()).searchParams.get('q') ?? ''));
  await page.route('**/v1/orgs/*/sandboxes?*', async (route) => {
    if (new URL(route.request().url()).searchParams.get('q') === 'gnp') await held;
    await route.continue();
  });
  await page.goto(addressOf(list));
  await openPalette(page);
  const sent = page.waitForRequest(/q=gnp/);
  await field(page).fill('gnp');
  await sent;
  await field(page).fill('api-rev');
  await option(page, /^api-review/).waitFor();
  release();
  await untilTrue('the older request is canceled', () => canceled.includes('gnp'));
  assert.equal(await option(page, HARMLESS).count(), 0);
});

test('actions of the open sandbox run, or say why they cannot', async () => {
  const { person, page } = await site.open(`/sandboxes/${sandboxId}/activity`);
  await page.getByRole('button', { name: 'Sleep' }).waitFor();
  await openPalette(page);
  await field(page).fill('wake');
  const wake = option(page, /^Wake/);
  assert.equal(await wake.getAttribute('aria-disabled'), 'true');
  assert.match((await wake.textContent()) ?? '', /Not possible while the sandbox is ready/);
  await person.look('api-review', 'palette-disabled');
  await page.keyboard.press('Enter');
  await field(page).fill('delete');
  await page.keyboard.press('Enter');
  await page.getByRole('alertdialog', { name: 'Delete api-review?' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('alertdialog').waitFor({ state: 'detached' });
  await openPalette(page);
  await field(page).fill('sleep');
  await page.keyboard.press('Enter');
  await page.getByText('Falling asleep', { exact: true }).waitFor();
});

test('the palette switches the theme and the org', async () => {
  const { page, userId } = await site.open('/me');
  const other = await site.api.makeOrg();
  await insertMembership(site.api.db, { orgId: other.orgId, userId, role: 'viewer' });
  await page.goto(addressOf(list));
  await openPalette(page);
  await field(page).fill('dark');
  await page.keyboard.press('Enter');
  await page.locator('html[data-theme="dark"]').waitFor({ state: 'attached' });
  await openPalette(page);
  await field(page).fill('switch to other');
  await page.keyboard.press('Enter');
  await page.waitForURL(addressOf(`/orgs/${other.orgId}/sandboxes`));
});

test('an ended session covers the palette, and then it does not open', async () => {
  const { page, userId } = await site.open(list);
  await openPalette(page);
  await site.api.db.deleteFrom('session').where('userId', '=', userId).execute();
  await field(page).fill('api');
  await page.getByRole('alertdialog', { name: 'You are signed out' }).waitFor();
  const loaded: string[] = [];
  page.on('request', (request) => loaded.push(request.url()));
  await page.keyboard.press('Control+k');
  await page.keyboard.press('?');
  // Sent after a request of the page.
  await page.evaluate("fetch('/health')");
  assert.deepEqual(
    loaded.filter((url) => url.endsWith('.js')),
    [],
  );
  assert.equal(await page.locator('dialog').count(), 2);
  assert.equal(await page.evaluate('document.activeElement.closest("[role=alertdialog]") !== null'), true);
});

test('shortcuts lead to pages and the filter, do nothing in fields, and can be turned off for good', async () => {
  const { person, page } = await site.open('/me');
  const heading = (name: string): Promise<void> => page.getByRole('heading', { name, level: 1 }).waitFor();
  await heading('You');
  // Until the org is known, its shortcut leads home.
  await page.getByRole('link', { name: 'Sandboxes', exact: true }).waitFor();
  for (const [key, name] of [
    ['s', 'Sandboxes'],
    ['a', 'Agent sessions'],
    ['i', 'Inbox'],
    ['s', 'Sandboxes'],
  ] as const) {
    await page.keyboard.press('g');
    await page.keyboard.press(key);
    await heading(name);
  }
  await page.getByRole('searchbox').waitFor();
  await page.keyboard.press('/');
  assert.equal(await page.evaluate('document.activeElement.type'), 'search');
  await page.keyboard.type('gi?/');
  assert.equal(await page.getByRole('searchbox').inputValue(), 'gi?/');
  await page.locator('h1').evaluate((heading) => (heading as unknown as { focus: () => void }).focus());
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
  await person.look('Sandboxes', 'shortcuts');
  await page.getByRole('checkbox').uncheck();
  await page.keyboard.press('Escape');
  await page.reload();
  await heading('Sandboxes');
  for (const key of ['?', 'g', 'i']) await page.keyboard.press(key);
  await openPalette(page);
  assert.equal(await page.getByRole('heading', { level: 1 }).textContent(), 'Sandboxes');
  await field(page).fill('shortcuts');
  await page.keyboard.press('Enter');
  await page.getByRole('checkbox').check();
  await page.keyboard.press('Escape');
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
});
