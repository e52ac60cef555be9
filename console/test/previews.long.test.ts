// Preview links of a sandbox in a real browser.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { addressOf, assertDisabled, HARMLESS, HOSTILE, startConsole, type ConsoleSite } from './browser.ts';

let site: ConsoleSite;
before(async () => {
  site = await startConsole();
});
after(() => site.close());

async function makeSandbox(name: string): Promise<{ id: string; path: string }> {
  const { id } = await site.api.makeSandbox('ready', { name });
  return { id, path: `/sandboxes/${id}/previews` };
}

async function share(sandboxId: string, body: object): Promise<string> {
  const path = `/v1/sandboxes/${sandboxId}/previews`;
  const answer = await site.api.call('POST', path, { token: site.api.token, body: { audience: 'public', ...body } });
  assert.equal(answer.status, 201);
  return answer.body.preview.url;
}

async function fillIn(page: Page, port: string): Promise<void> {
  await page.getByRole('button', { name: 'Create link' }).click();
  await page.getByRole('dialog', { name: 'Create a link' }).waitFor();
  await page.getByLabel('Port', { exact: true }).fill(port);
}

const submit = (page: Page): Promise<void> =>
  page.getByRole('dialog').getByRole('button', { name: 'Create link' }).click();

test('a team link is shown once, with a copy and a link that names no referrer', async () => {
  const { path } = await makeSandbox('team-one');
  const { person, page } = await site.open(path);
  await page.getByText('No public links').waitFor();
  await person.look('team-one', 'previews-empty');
  await fillIn(page, '3000');
  await submit(page);
  await page.getByText('The team link is created').waitFor();
  const link = page.getByRole('link', { name: 'Open port 3000 in a new tab' });
  assert.equal(await link.getAttribute('rel'), 'noopener noreferrer');
  const href = (await link.getAttribute('href')) ?? '';
  assert.match(href, /^http:\/\/berth\.example\.test\/preview|previews\.example\.test/);
  assert.equal(await page.locator('code', { hasText: href }).count(), 1);
  await page.getByRole('button', { name: 'Copy link to port 3000' }).waitFor();
  await person.look('team-one', 'previews-team');
  await page.getByRole('button', { name: 'Done' }).click();
  await page.getByText('No public links').waitFor();
});

test('a public link is created with its options, and revoked after a confirmation', async () => {
  const { id, path } = await makeSandbox('public-one');
  const { person, page } = await site.open(path);
  await fillIn(page, '8080');
  await page.getByRole('dialog').getByLabel('Public').check();
  await page.getByLabel('Lifetime').selectOption('7 days');
  await page.getByText('More options').click();
  await page.getByLabel('Label').fill(HOSTILE);
  await page.getByLabel('End user').fill('user-7');
  await page.getByLabel('Pages of other origins').check();
  await person.look('public-one', 'previews-create');
  await submit(page);
  await page.getByRole('button', { name: 'Done' }).click();
  const row = page.getByRole('row', { name: /Port 8080/ });
  await row.getByText(HARMLESS).waitFor();
  await row.getByText('user-7').waitFor();
  await person.look('public-one', 'previews');
  const stored = await site.api.db
    .selectFrom('preview_link')
    .select(['port', 'label', 'end_user_id', 'embeddable', 'expires_at', 'created_at'])
    .where('sandbox_id', '=', id)
    .executeTakeFirstOrThrow();
  assert.equal(Math.round((stored.expires_at.getTime() - stored.created_at.getTime()) / 1_000), 7 * 86_400);
  assert.deepEqual(
    [stored.port, stored.label, stored.end_user_id, stored.embeddable],
    [8_080, HOSTILE, 'user-7', true],
  );

  await page.getByRole('button', { name: /^Revoke the link to port 8080/ }).click();
  await page.getByRole('alertdialog', { name: 'Revoke the link to port 8080?' }).waitFor();
  await person.look('public-one', 'previews-revoke');
  await page.keyboard.press('Escape');
  await page.getByRole('alertdialog').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: /^Revoke the link to port 8080/ }).click();
  await page.getByRole('button', { name: 'Revoke link' }).click();
  await page.getByText('No public links').waitFor();
});

test('a refused link keeps the form and shows the sentence of the service', async () => {
  const { path } = await makeSandbox('refused-one');
  const { page } = await site.open(path);
  await fillIn(page, '3000');
  await page.route('**/previews', (route) =>
    route.request().method() === 'POST'
      ? route.fulfill({ status: 409, json: { error: { code: 'preview_link_limit', message: 'revoke some links' } } })
      : route.continue(),
  );
  await submit(page);
  await page.getByText('revoke some links').waitFor();
  assert.equal(await page.getByLabel('Port', { exact: true }).inputValue(), '3000');
});

test('a viewer sees no URL of a public link, cannot revoke or share it, and creates team links', async () => {
  const { id, path } = await makeSandbox('guarded-one');
  const url = await share(id, { port: 4_000, label: 'demo' });
  const { person, page } = await site.open(path, 'viewer');
  await page.getByRole('row', { name: /Port 4000/ }).waitFor();
  assert.equal((await page.content()).includes(url), false);
  await assertDisabled(page, 'Revoke the link to port 4000, demo', /Needs the permission sandbox\.preview\.share/);
  await page.keyboard.press('Escape');
  await person.look('guarded-one', 'previews-viewer');
  await fillIn(page, '4000');
  await page.getByRole('dialog').getByLabel('Public').check();
  const create = page.getByRole('dialog').getByRole('button', { name: 'Create link' });
  assert.equal(await create.getAttribute('aria-disabled'), 'true');
  await page.getByRole('dialog').getByLabel('Team').check();
  await submit(page);
  await page.getByText('The team link is created').waitFor();
});

test('a link that does not open says why, and an unknown reason is shown by its name', async () => {
  const { id, path } = await makeSandbox('inactive-one');
  await share(id, { port: 5_000 });
  const { person, page } = await site.open('/nothing');
  await page.route('**/previews?*', async (route) => {
    const response = await route.fetch({ url: `${site.url}/v1${path}?limit=100` });
    const body = (await response.json()) as { previews: { inactiveReason: string; url: null }[] };
    for (const preview of body.previews) Object.assign(preview, { inactiveReason: 'moon_phase', url: null });
    await route.fulfill({ response, json: body });
  });
  await person.open(addressOf(path));
  await page.getByText('Does not open: moon_phase.').waitFor();
});
