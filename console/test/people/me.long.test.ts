// The person's own page in a real browser.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { HARMLESS, HOSTILE, startConsole, type ConsoleSite } from '../browser.ts';

let site: ConsoleSite;
before(async () => {
  site = await startConsole();
});
after(() => site.close());

test('a person changes its name, which the frame shows at once', async () => {
  const { person, page } = await site.open('/me');
  await page.getByLabel('Name').fill('Ada King');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('button', { name: 'Account: Ada King' }).waitFor();
  await person.look('You', 'me');
  await page.getByLabel('Name').fill(HOSTILE);
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText(HARMLESS).first().waitFor();
});

test('an agent token is created, shown once and revoked', async () => {
  const { person, page } = await site.open('/me');
  await page.getByText('No agent tokens yet').waitFor();
  await page.getByRole('button', { name: 'Create token' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('phone');
  await dialog.getByLabel('May answer approval requests').check();
  await person.look('You', 'me-token');
  await dialog.getByRole('button', { name: 'Create token' }).click();
  const token =
    (await page
      .getByRole('alertdialog')
      .getByText(/^bat_\w+$/)
      .textContent()) ?? '';
  assert.equal((await site.api.call('GET', '/v1/agent-sessions', { token })).status, 200);
  await page.getByRole('button', { name: 'I have stored it' }).click();
  await page.getByRole('row', { name: /phone.*Active.*read, send, approve/ }).waitFor();
  assert.equal(await page.getByText(token).count(), 0);
  await page.getByRole('button', { name: 'Revoke phone' }).click();
  await page.getByRole('button', { name: 'Revoke token' }).click();
  await page.getByRole('row', { name: /phone.*Revoked/ }).waitFor();
  assert.equal((await site.api.call('GET', '/v1/agent-sessions', { token })).status, 401);
});
