// API keys of an org in a real browser. The life of a key: ../journeys/key.long.test.ts.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import type { Page } from 'playwright-core';
import { makeKeyRow } from '../../../api/test/world/people-rows.ts';
import { assertDisabled, HARMLESS, HOSTILE, startConsole, type ConsoleSite } from '../browser.ts';

let site: ConsoleSite;
let keys: string;
before(async () => {
  site = await startConsole();
  keys = `/orgs/${site.api.orgId}/api-keys`;
});
after(() => site.close());

async function fillIn(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: 'Create key' }).click();
  await page.getByRole('dialog', { name: 'Create an API key' }).waitFor();
  await page.getByLabel('Name').fill(name);
}

const submit = (page: Page): Promise<void> =>
  page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();

const stored = async (name: string) =>
  await site.api.db.selectFrom('api_key').selectAll().where('name', '=', name).executeTakeFirstOrThrow();

test('a key has the chosen permissions and lifetime, and its hostile name is shown as text', async () => {
  const { person, page } = await site.open(keys);
  await fillIn(page, HOSTILE);
  await page.getByLabel('Chosen permissions').check();
  await page.getByLabel('sandbox.read', { exact: true }).check();
  for (const name of ['org.update', 'api_keys.manage', 'project.delete'])
    assert.equal(await page.getByLabel(name, { exact: true }).count(), 0, name);
  await page.getByLabel('project.read').check();
  await page.getByLabel('Expires').selectOption('in 30 days');
  await person.look('API keys', 'api-keys-create');
  await submit(page);
  await page.getByRole('alertdialog', { name: 'Copy the key now' }).waitFor();
  site.api.secret(await page.getByRole('alertdialog').locator('code').first().innerText());
  await person.look('API keys', 'api-keys-secret');
  await page.getByRole('button', { name: 'I have stored it' }).click();
  await page.getByRole('row').getByText(HARMLESS).waitFor();
  const { scopes, expires_at: expiresAt, created_at: createdAt } = await stored(HOSTILE);
  assert.deepEqual(scopes, ['project.read', 'sandbox.read']);
  assert.equal(Math.round(((expiresAt?.getTime() ?? 0) - createdAt.getTime()) / 86_400_000), 30);
});

test('the list shows states, scopes and use, and a revocation needs a confirmation', async () => {
  const { orgId, userId } = site.api;
  await makeKeyRow(site.api.db, { orgId, createdBy: userId, ending: 'expired' });
  const { id } = await makeKeyRow(site.api.db, { orgId, createdBy: userId, scopes: [] });
  await site.api.db.updateTable('api_key').set({ name: 'nightly' }).where('id', '=', id).execute();
  const { person, page } = await site.open(keys);
  await page.getByRole('row', { name: /nightly.*Active.*none/ }).waitFor();
  await page.getByRole('row', { name: /made by a test.*Expired/ }).waitFor();
  await assertDisabled(page, 'Revoke made by a test', /It is expired already/);
  await page.keyboard.press('Escape');
  await page.getByText('2 permissions').click();
  await person.look('API keys', 'api-keys');
  await page.getByRole('button', { name: 'Revoke nightly' }).click();
  await page.getByRole('alertdialog', { name: 'Revoke nightly?' }).waitFor();
  await page.getByRole('button', { name: 'Revoke key' }).click();
  await page.getByText('nightly is revoked').waitFor();
  await page.getByRole('row', { name: /nightly.*Revoked/ }).waitFor();
});

test('an old sign-in is asked to confirm itself beside the form, which keeps its input', async () => {
  const { person, page, userId } = await site.open(keys);
  const age = (interval: string) =>
    sql`update "session" set "authenticatedAt" = now() - ${interval}::interval where "userId" = ${userId}`.execute(
      site.api.db,
    );
  await age('20 minutes');
  await fillIn(page, 'after-a-while');
  await submit(page);
  await page.getByText('Confirm your sign-in first').waitFor();
  await person.look('API keys', 'api-keys-reauthentication');
  const opened = page.context().waitForEvent('page');
  await page.getByRole('link', { name: 'Confirm the sign-in' }).click();
  const tab = await opened;
  await tab.getByLabel('Password').waitFor();
  await age('0 minutes');
  await submit(page);
  await page.getByRole('alertdialog', { name: 'Copy the key now' }).waitFor();
  site.api.secret(await page.getByRole('alertdialog').locator('code').first().innerText());
  assert.ok((await stored('after-a-while')).scopes?.includes('sandbox.create'));
});

test('a member without the permission learns who has it, without a refused request', async () => {
  const { person, page } = await site.open(`/orgs/${site.api.orgId}/sandboxes`, 'viewer');
  const refused: string[] = [];
  page.on('response', (response) => {
    if (response.status() === 403) refused.push(response.url());
  });
  await page.getByRole('link', { name: 'API keys' }).click();
  await page.getByRole('heading', { name: 'You may not see this' }).waitFor();
  await assertDisabled(page, 'Create key', /Needs the permission api_keys\.manage\. The roles owner and admin/);
  await page.keyboard.press('Escape');
  await person.look('API keys', 'api-keys-viewer');
  assert.deepEqual(refused, []);
});
