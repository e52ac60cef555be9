// Session, navigation and states of pages in a real browser.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { PASSWORD } from '../../api/test/pages/site.ts';
import { addressOf, startConsole, type ConsoleSite } from './browser.ts';

let site: ConsoleSite;
let list: string;
before(async () => {
  site = await startConsole();
  list = `/orgs/${site.api.orgId}/sandboxes`;
});
after(() => site.close());

test('signing in leads back to the page that was asked for', async () => {
  const { page } = await site.open(`${list}?status=failed`);
  assert.equal(page.url(), addressOf(`${list}?status=failed`));
});

test('home leads a new org to its first run unless it was skipped, and others to their overview', async () => {
  const { page } = await site.open('');
  await page.waitForURL(addressOf(`/orgs/${site.api.orgId}/start`));
  await page.getByRole('link', { name: 'Skip', exact: true }).click();
  await page.waitForURL(addressOf(`/orgs/${site.api.orgId}`));
  await page.getByRole('link', { name: 'Berth', exact: true }).click();
  await page.waitForURL(addressOf(`/orgs/${site.api.orgId}`));
  const viewer = await site.open('', 'viewer');
  await viewer.page.waitForURL(addressOf(`/orgs/${site.api.orgId}`));
});

test('a person without an org can create one, which starts with its first run', async () => {
  const stranger = await site.open('', null);
  await stranger.page.getByLabel('Name of the org').waitFor();
  await stranger.person.look('You are not a member of any org yet', 'no-org');
  await stranger.page.getByLabel('Name of the org').fill('Second org');
  await stranger.page.getByRole('button', { name: 'Create org' }).click();
  await stranger.page.getByRole('button', { name: 'Org: Second org' }).waitFor();
  await stranger.page.getByRole('heading', { name: 'Get started' }).waitFor();
});

test('missing pages and sandboxes, and refused orgs, say so and lead back', async () => {
  const { person, page } = await site.open('/nothing/here');
  await person.look('No such page', 'wrong-address');
  await person.open(addressOf('/sandboxes/sbx_aaaaaaaaaaaaaaaaaaaaaaaaaa'));
  await page.getByRole('heading', { name: 'Not found' }).waitFor();
  await page.getByRole('link', { name: 'Go to your orgs' }).waitFor();
  const other = await site.api.makeOrg();
  await person.open(addressOf(`/orgs/${other.orgId}/sandboxes`));
  await page.getByRole('heading', { name: /Not found|You may not see this/ }).waitFor();
});

test('a service that does not respond is reported, and tried again on request', async () => {
  const { person, page } = await site.open('/nothing');
  await page.route('**/v1/orgs/*/sandboxes?*', (route) =>
    route.fulfill({
      status: 500,
      headers: { 'x-request-id': `req_${'0'.repeat(32)}` },
      json: { error: { code: 'internal_error', message: 'the service failed' } },
    }),
  );
  await person.open(addressOf(list));
  await page.getByText('This did not work').waitFor();
  await page.getByText(`req_${'0'.repeat(32)}`).waitFor();
  await person.look('Sandboxes', 'error');
  await page.unroute('**/v1/orgs/*/sandboxes?*');
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByText('No sandboxes yet').waitFor();
});

test('a session that ends is covered by a dialog, which keeps input and goes after a new sign-in', async () => {
  const { page, person, email, userId } = await site.open(`${list}/new`);
  await page.getByLabel('Name').fill('a draft');
  await site.api.db.deleteFrom('session').where('userId', '=', userId).execute();
  // A request of the live updates may notice first; then the button is covered, and a real click
  // would wait until the dialog is gone.
  await page.locator('main button[type=submit]').dispatchEvent('click');
  await page.getByRole('alertdialog', { name: 'You are signed out' }).waitFor();
  await person.look('Create sandbox', 'signed-out');
  const tab = await signInAgain(page, email);
  await tab.close();
  await page.evaluate('dispatchEvent(new Event("focus"))');
  await page.getByRole('alertdialog').waitFor({ state: 'detached' });
  assert.equal(await page.getByLabel('Name').inputValue(), 'a draft');
});

/** Signs in from the dialog that covers the page, in a new tab. */
async function signInAgain(page: Page, email: string): Promise<Page> {
  const opened = page.context().waitForEvent('page');
  await page.getByRole('link', { name: 'Sign in again' }).click();
  const tab = await opened;
  await tab.getByLabel('Email address').fill(email);
  await tab.getByLabel('Password').fill(PASSWORD);
  await tab.getByRole('button', { name: 'Sign in', exact: true }).click();
  await tab.getByRole('heading', { level: 1 }).waitFor();
  return tab;
}

test('another person who signs in sees nothing of the first', async () => {
  const { page, userId } = await site.open(list);
  await page.getByRole('heading', { name: 'Sandboxes', exact: true }).waitFor();
  await page.evaluate(`sessionStorage.setItem('draft', 'mine'); globalThis.isFirstPage = true`);
  const other = await site.account({ name: 'Bob' });
  await site.api.db.deleteFrom('session').where('userId', '=', userId).execute();
  await page.evaluate('document.dispatchEvent(new Event("visibilitychange"))');
  await page.getByRole('alertdialog', { name: 'You are signed out' }).waitFor();
  await signInAgain(page, other.email);
  await page.evaluate('dispatchEvent(new Event("focus"))');
  await page.getByRole('heading', { name: 'You are not a member of any org yet' }).waitFor();
  assert.deepEqual(await page.evaluate(`[sessionStorage.getItem('draft'), globalThis.isFirstPage ?? false]`), [
    null,
    false,
  ]);
});

test('a draft is removed by a sign-out, and by another person who signs in in the tab', async () => {
  const { page, userId, email } = await site.open(list);
  const draft = (): Promise<unknown> => page.evaluate(`sessionStorage.getItem('draft')`);
  const signIn = async (as: string): Promise<void> => {
    await page.getByLabel('Email address').fill(as);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('button', { name: /^Account: / }).waitFor();
  };
  const loseSession = async (): Promise<void> => {
    await site.api.db.deleteFrom('session').where('userId', '=', userId).execute();
    await page.goto(addressOf(list));
    await page.waitForURL(/\/sign-in\?/);
  };
  await page.getByText('No sandboxes yet').waitFor();
  await page.evaluate(`sessionStorage.setItem('draft', 'mine')`);
  await loseSession();
  await signIn(email);
  assert.equal(await draft(), 'mine');
  await loseSession();
  await signIn((await site.account({ name: 'Bob' })).email);
  assert.equal(await draft(), null);
  await page.evaluate(`sessionStorage.setItem('draft', 'of Bob')`);
  await page.getByRole('button', { name: 'Account: Bob' }).click();
  await page.getByRole('link', { name: 'Sign out' }).click();
  await page.waitForURL(/\/sign-out/);
  assert.equal(await draft(), null);
});

test('the token is in no storage, and no request of the API has a cookie', async () => {
  const { page } = await site.open('/nothing');
  const cookies: (string | undefined)[] = [];
  const tokens: string[] = [];
  page.on('request', (request) => {
    if (!new URL(request.url()).pathname.startsWith('/v1/')) return;
    tokens.push(request.headers()['authorization'] ?? '');
    cookies.push(request.headers()['cookie']);
  });
  await page.goto(addressOf(list));
  await page.getByText('No sandboxes yet').waitFor();
  assert.ok(tokens.length > 0 && tokens.every((text) => /^Bearer \S{20,}$/.test(text)));
  const stored = await page.evaluate<string>(
    'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])',
  );
  for (const token of tokens) assert.ok(!stored.includes(token.slice('Bearer '.length)));
});

test('the theme follows the system until one is chosen, which is kept', async () => {
  const { page } = await site.open(list);
  const untilTheme = (theme: string): Promise<void> =>
    page.locator(`html[data-theme="${theme}"]`).waitFor({ state: 'attached' });
  await page.emulateMedia({ colorScheme: 'dark' });
  await untilTheme('dark');
  await page.emulateMedia({ colorScheme: 'light' });
  await untilTheme('light');
  await page.getByRole('button', { name: 'Account: Ada Lovelace' }).click();
  await page.getByRole('radio', { name: 'Dark' }).waitFor();
  await page.emulateMedia({ colorScheme: 'light' });
  await page.getByRole('radio', { name: 'Dark' }).click();
  await untilTheme('dark');
  await page.reload();
  await page.getByRole('heading', { name: 'Sandboxes' }).waitFor();
  await untilTheme('dark');
});
