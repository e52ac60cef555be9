// Settings of an org in a real browser.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { assertDisabled, HARMLESS, HOSTILE, startConsole, type ConsoleSite } from '../browser.ts';

let site: ConsoleSite;
let settings: string;
before(async () => {
  site = await startConsole();
  settings = `/orgs/${site.api.orgId}/settings`;
});
after(() => site.close());

test('an owner renames the org, and every page shows the new name', async () => {
  const { person, page } = await site.open(settings);
  await page.getByRole('button', { name: 'Copy the id of the org' }).waitFor();
  await page.getByText(site.api.orgId).waitFor();
  await person.look('Org', 'settings');
  await page.getByLabel('Name').fill(HOSTILE);
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('The org is renamed').waitFor();
  await page.getByRole('button', { name: `Org: ${HARMLESS}` }).waitFor();
  assert.equal(await page.getByLabel('Name').inputValue(), HOSTILE);
});

test('a domain is claimed with its record, proven by it, and removed', async () => {
  const { person, page } = await site.open(settings);
  const domain = page.getByLabel('Mail domain', { exact: true });
  await domain.fill('not a domain');
  await page.getByRole('button', { name: 'Claim domain' }).click();
  await page.getByText(/must be a domain such as example\.com/).waitFor();
  await assertDisabled(page, 'Require single sign-on', /Prove a domain first/);
  await page.keyboard.press('Escape');
  await domain.fill('mail.example.test');
  await page.getByRole('button', { name: 'Claim domain' }).click();
  const row = page.getByRole('row', { name: /mail\.example\.test/ });
  await row.waitFor();
  await page.getByRole('button', { name: 'Check the record of mail.example.test' }).click();
  await page.getByText('mail.example.test is not proven').waitFor();
  await person.look('Org', 'settings-domain');
  const [name = '', value = ''] = await row.locator('code').allTextContents();
  site.api.txtRecords.set(name, [value]);
  await page.getByRole('button', { name: 'Check the record of mail.example.test' }).click();
  await page.getByRole('row', { name: /mail\.example\.test.*Proven/ }).waitFor();
  await page.getByRole('button', { name: 'Require single sign-on' }).click();
  await page.getByText('The requirement was not changed').waitFor();
  await page.getByRole('button', { name: 'Remove mail.example.test' }).click();
  await page.getByRole('button', { name: 'Remove domain' }).click();
  await page.getByText('No mail domains.').waitFor();
});

test('a viewer may leave only, and learns who may do the rest, without a refused request', async () => {
  const { person, page } = await site.open(`/orgs/${site.api.orgId}/sandboxes`, 'viewer');
  const refused: string[] = [];
  page.on('response', (response) => {
    if (response.status() === 403) refused.push(response.url());
  });
  await page.getByRole('link', { name: 'Org', exact: true }).click();
  await page.getByText(/Needs the permission org\.owners\.manage\. The role owner has it/).waitFor();
  await assertDisabled(page, 'Save', /Needs the permission org\.update\. The roles owner and admin/);
  await page.keyboard.press('Escape');
  await person.look('Org', 'settings-viewer');
  assert.deepEqual(refused, []);
  await page.getByRole('button', { name: 'Leave org' }).click();
  await page.getByRole('alertdialog', { name: 'Leave this org?' }).waitFor();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Leave org' }).click();
  await page.getByRole('heading', { name: 'You are not a member of any org yet' }).waitFor();
});

test('the last owner cannot leave, and an org of others has no settings', async () => {
  const { db, orgId } = site.api;
  const { page, userId } = await site.open('/me');
  const others = await db
    .selectFrom('membership')
    .select('user_id')
    .where('org_id', '=', orgId)
    .where('role', '=', 'owner')
    .where('user_id', '!=', userId)
    .execute();
  await db
    .updateTable('membership')
    .set({ role: 'admin' })
    .where('org_id', '=', orgId)
    .where(
      'user_id',
      'in',
      others.map((row) => row.user_id),
    )
    .execute();
  await page.goto(`http://berth.example.test/console${settings}`);
  await page.locator('button[aria-disabled=true]', { hasText: 'Leave org' }).waitFor();
  await assertDisabled(page, 'Leave org', /make another member an owner first/);
  const other = await site.api.makeOrg();
  await page.goto(`http://berth.example.test/console/orgs/${other.orgId}/settings`);
  await page.getByRole('heading', { name: 'Not found' }).waitFor();
});
