// The cap on machine hours of an org: a warning, refused work, a higher cap, work again.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import type { Person } from '../../../api/test/pages/browser.ts';
import { addUsed, HOUR_MS, setSubscription } from '../../../api/test/world/machine-time.ts';
import { assertDisabled, startConsole, type ConsoleSite } from '../browser.ts';

const CAP = 10;

let site: ConsoleSite;
let usage: string;
let list: string;
let admin: { person: Person; page: Page };
let operator: { person: Person; page: Page };
before(async () => {
  site = await startConsole([], { durable: true });
  const { db, orgId } = site.api;
  await setSubscription(db, orgId, { machine_hour_limit: CAP });
  usage = `/orgs/${orgId}/usage`;
  list = `/orgs/${orgId}/sandboxes`;
  // Warnings are about orgs with an awake sandbox.
  const body = { agent: 'agent_one', projectId: site.api.projectId, name: 'worker' };
  await site.api.call('POST', `/v1/orgs/${orgId}/sandboxes`, { body });
  admin = await site.open(usage, 'admin');
  operator = await site.open(`${list}/new`, 'operator');
});
after(() => site.close());

test('a warning at 80 % of the cap reaches the usage page, the overview and the feed', async () => {
  const { person, page } = admin;
  await page.getByRole('heading', { name: new RegExp(`^0(?:\\.\\d+)? h of ${CAP} h$`) }).waitFor();
  await addUsed(site.api.db, site.api, 8.2 * HOUR_MS);
  await page.getByRole('heading', { name: `8.2 h of ${CAP} h` }).waitFor();
  await page.getByText(/^80 % of the cap of the org .* reached/).waitFor();
  await person.look('Usage', 'caps-warning');
  await page.getByRole('link', { name: 'Overview' }).click();
  await page.getByText(/^80 % of the cap of the org .* reached/).waitFor();
  await page.getByRole('listitem').filter({ hasText: 'Usage cap nearly reached' }).first().waitFor();
});

const create = (page: Page): Promise<void> =>
  page.getByRole('main').getByRole('button', { name: 'Create sandbox', exact: true }).click();

test('a create at the cap is refused with the sentence of the service and a link to the cap', async () => {
  const { person, page } = operator;
  await addUsed(site.api.db, site.api, 2 * HOUR_MS);
  await page.getByLabel('Name').fill('patient');
  await create(page);
  const alert = page.getByRole('alert').filter({ hasText: 'The sandbox was not created' });
  await alert.getByText(/the cap of the org .* is 10 machine hours in this billing period and is used up/).waitFor();
  await person.look('Create sandbox', 'caps-refused');
  await alert.getByRole('link', { name: 'Usage and cap of the org' }).click();
  await page.getByRole('heading', { name: 'You may not see this' }).waitFor();
  await assertDisabled(page, 'Change cap', /usage_guardrails\.manage\. The roles owner and admin have it/);
  await page.keyboard.press('Escape');
  await person.look('Usage', 'caps-operator');
});

test('an admin raises the cap, and the create works', async () => {
  const { page } = admin;
  await page.getByRole('link', { name: 'Usage' }).click();
  await page.getByRole('heading', { name: `10.2 h of ${CAP} h` }).waitFor();
  await page.getByRole('button', { name: 'Change cap' }).click();
  const limit = page.getByRole('spinbutton', { name: 'Machine hours' });
  assert.equal(await limit.inputValue(), String(CAP));
  await limit.fill(String(2 * CAP));
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: `10.2 h of ${2 * CAP} h` }).waitFor();

  const other = operator.page;
  await other.getByRole('link', { name: 'Sandboxes', exact: true }).click();
  await other.getByRole('link', { name: 'Create sandbox' }).click();
  await other.getByLabel('Name').fill('patient');
  await create(other);
  await other.getByRole('heading', { name: 'patient' }).waitFor();
  await other.getByText('Ready', { exact: true }).waitFor();
  await page.getByRole('link', { name: 'Overview' }).click();
  await page.getByRole('link', { name: /^Ready 2$/ }).waitFor();
  assert.deepEqual([admin.person.complaints, operator.person.complaints], [[], []]);
});
