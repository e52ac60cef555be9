// Activity of an org and of a sandbox in a real browser.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { SETTINGS } from '../../../api/test/world/settings.ts';
import { insertActivities, type NewActivity } from '../../../api/src/store/activity/activity.ts';
import { addressOf, HARMLESS, HOSTILE, startConsole, type ConsoleSite } from '../browser.ts';

const SYSTEM = { kind: 'system', id: null, userId: null } as const;
const PAGE_SIZE = 50;

let site: ConsoleSite;
let feed: string;
before(async () => {
  site = await startConsole();
  feed = `/orgs/${site.api.orgId}/activity`;
});
after(() => site.close());

const insert = (entries: readonly Partial<NewActivity>[]): Promise<void> =>
  insertActivities(
    site.api.db,
    entries.map((entry) => ({ orgId: site.api.orgId, actor: SYSTEM, kind: 'org_created', ...entry })),
  );

const events = (page: Page) => page.locator('main li');

test('a sandbox without activity shows what appears there', async () => {
  const { id } = await site.api.makeSandbox('ready', { name: 'quiet-one' });
  const { person, page } = await site.open(`/sandboxes/${id}/activity`, 'viewer');
  await page.getByText('No activity yet').waitFor();
  await person.look('quiet-one', 'activity-empty');
});

test('the timeline shows kinds as words, actors, reasons and hostile details as text', async () => {
  const { id: sandboxId } = await site.api.makeSandbox('failed', { name: 'from-the-feed' });
  const { person, page, userId } = await site.open(feed);
  const session = { kind: 'session', id: 'tok_1', userId, requestId: `req_${'0'.repeat(32)}` } as const;
  await insert([
    { kind: 'sandbox_created', sandboxId, actor: session, details: { name: HOSTILE, repository: HOSTILE } },
    {
      kind: 'sandbox_failed',
      sandboxId,
      details: { from: 'ready', to: 'failed', reason: { code: 'vm_lost', message: 'QEMU exited: out of memory' } },
    },
    { kind: 'api_key_created', actor: { ...session, kind: 'api_key', id: 'key_1' }, details: { name: 'ci' } },
    { kind: 'plan_changed', actor: { kind: 'operator', id: null, userId: null }, details: { from: 'a', to: 'b' } },
  ]);
  await page.route('**/activity?*', async (route) => {
    const response = await route.fetch({ url: route.request().url().replace(SETTINGS.publicUrl, site.url) });
    const body = (await response.json()) as { activity: { kind: string; actor: object }[] };
    for (const entry of body.activity.filter(({ kind }) => kind === 'plan_changed')) {
      entry.kind = 'sandbox_teleported';
      entry.actor = { kind: 'robot', id: null, userId: null };
    }
    await route.fulfill({ response, json: body });
  });
  await person.open(addressOf(feed));
  await page.getByText('QEMU exited: out of memory').waitFor();
  for (const text of ['Sandbox created', 'Sandbox failed', 'API key created', 'sandbox_teleported', 'robot'])
    await page.getByText(text, { exact: true }).last().waitFor();
  await events(page)
    .filter({ hasText: /API key created.*ci/ })
    .getByText('Ada Lovelace with an API key')
    .waitFor();
  await events(page).filter({ hasText: 'Sandbox failed' }).getByText('Berth', { exact: true }).waitFor();
  const created = events(page).filter({ hasText: 'Sandbox created' });
  await created.getByText('Details').click();
  assert.equal(await created.getByText(HARMLESS).count(), 3);
  await created.getByRole('button', { name: 'Copy Request' }).waitFor();
  await person.look('Activity', 'activity');
  await created.getByRole('link', { name: sandboxId }).click();
  await page.getByRole('heading', { name: 'from-the-feed' }).waitFor();
});

test('a filter by kind is kept in the address, and can be taken back', async () => {
  const { page } = await site.open(`${feed}?kind=sandbox_levitated`);
  await page.locator('strong', { hasText: 'Sandbox failed' }).waitFor();
  await page.getByLabel('Kind of event').selectOption('API key created');
  await page.waitForURL(addressOf(`${feed}?kind=api_key_created`));
  await page.locator('strong', { hasText: 'Sandbox failed' }).waitFor({ state: 'detached' });
  assert.deepEqual(new Set(await events(page).locator('strong').allInnerTexts()), new Set(['API key created']));
  await page.getByLabel('Kind of event').selectOption('Domain claimed');
  await page.getByText('No events of this kind').waitFor();
  await page.getByRole('button', { name: 'Show all events' }).click();
  await page.locator('strong', { hasText: 'Sandbox failed' }).waitFor();
});

test('a tab of a sandbox has its events alone, and more of them on request', async () => {
  const { id: sandboxId } = await site.api.makeSandbox('ready', { name: 'busy-one' });
  const { person, page } = await site.open(`/sandboxes/${sandboxId}`, 'viewer');
  await insert(Array.from({ length: PAGE_SIZE + 5 }, () => ({ kind: 'sandbox_exec', sandboxId })));
  // Until the page is there, the last link is the one of the org.
  await page.getByRole('heading', { name: 'busy-one' }).waitFor();
  await page.getByRole('link', { name: 'Activity' }).last().click();
  await page.waitForURL(addressOf(`/sandboxes/${sandboxId}/activity`));
  await page.getByText('Command run').nth(PAGE_SIZE).waitFor({ state: 'attached' });
  assert.equal(await events(page).count(), PAGE_SIZE);
  assert.equal(await page.title(), 'busy-one · Activity · Berth');
  await person.look('busy-one', 'sandbox-activity');
  await page.getByRole('button', { name: 'Show more' }).click();
  await page.getByRole('button', { name: 'Show more' }).waitFor({ state: 'detached' });
  assert.equal(await events(page).count(), PAGE_SIZE + 5);
  // The filter of a sandbox offers no kinds of the org.
  await page.goto(addressOf(`/sandboxes/${sandboxId}/activity?kind=org_created`));
  await events(page).filter({ hasText: 'Command run' }).first().waitFor();
});

test('a refused feed says so; a failed one is tried again on request', async () => {
  const { person, page } = await site.open('/nothing');
  const error = (status: number, code: string) => ({ status, json: { error: { code, message: `the ${code}` } } });
  await page.route('**/activity?*', (route) => route.fulfill(error(403, 'permission_denied')));
  await person.open(addressOf(feed));
  await page.getByRole('heading', { name: 'You may not see this' }).waitFor();
  await page.unroute('**/activity?*');
  await page.route('**/activity?*', (route) => route.fulfill(error(500, 'internal_error')));
  await person.open(addressOf(feed));
  await page.getByText('the internal_error').waitFor();
  await page.unroute('**/activity?*');
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.locator('main li strong').first().waitFor();
});
