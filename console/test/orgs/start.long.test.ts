// The first run of an org in a real browser: refusals, failures and several tabs. The journey on
// real processes: ../installed/first-run.long.test.ts.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Updateable } from 'kysely';
import { SELF_HOSTED_PLAN } from '@berth/contract/billing/plans.ts';
import type { Role } from '@berth/contract/route/permissions.ts';
import type { SandboxTable } from '../../../api/src/store/database/tables-sandboxes.ts';
import { insertActivity } from '../../../api/src/store/activity/activity.ts';
import { insertMembership } from '../../../api/src/store/people/identity.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { untilDone } from '../hands.ts';
import {
  addressOf,
  assertDisabled,
  HARMLESS,
  HOSTILE,
  lookFromTop,
  startConsole,
  type ConsoleSite,
} from '../browser.ts';

const ONE = { ...SELF_HOSTED_PLAN, id: 'one', name: 'One', concurrentSandboxes: 1 };

let site: ConsoleSite;
before(async () => {
  site = await startConsole([], { plans: [ONE] });
});
after(() => site.close());

const start = (orgId = site.api.orgId): string => `/orgs/${orgId}/start`;

/** A member of another org, which has no sandbox yet. */
async function openOther(role: Role) {
  const org = await site.api.makeOrg();
  const { person, page, userId } = await site.open('/me', null);
  await insertMembership(site.api.db, { orgId: org.orgId, userId, role });
  return { ...org, person, page, userId };
}

const sandboxesOf = async (orgId: string) =>
  await site.api.db.selectFrom('sandbox').selectAll().where('org_id', '=', orgId).execute();

test('two tabs that create at the same time make one sandbox', async () => {
  const { person, page, orgId } = await openOther('owner');
  const other = await page.context().newPage();
  for (const tab of [page, other]) await tab.goto(addressOf(start(orgId)));
  let sent = 0;
  await page.context().route('**/v1/orgs/*/sandboxes', async (route) => {
    if (route.request().method() === 'POST') {
      sent += 1;
      await untilTrue('both tabs send their create', () => sent >= 2);
    }
    await route.continue();
  });
  const buttons = [page, other].map((tab) => tab.getByRole('button', { name: 'Create sandbox' }));
  await Promise.all(buttons.map((button) => button.waitFor()));
  await person.look('Get started', 'start');
  await Promise.all(buttons.map((button) => button.click()));
  for (const tab of [page, other]) await tab.getByText('Starting', { exact: true }).waitFor();
  assert.equal((await sandboxesOf(orgId)).length, 1);
  await other.close();
  await person.look('Get started', 'start-creating');
});

test('a failed sandbox says why, and another can be created, as after a delete', async () => {
  const { person, page, orgId } = await openOther('owner');
  await page.goto(addressOf(start(orgId)));
  await page.getByRole('button', { name: 'Create sandbox' }).click();
  await page.getByText('Starting', { exact: true }).waitFor();
  const [first] = await sandboxesOf(orgId);
  const set = (changes: Updateable<SandboxTable>) =>
    site.api.db
      .updateTable('sandbox')
      .set(changes)
      .where('id', '=', first?.id ?? '')
      .execute();
  await set({ status: 'failed', status_reason_code: 'create_failed', status_reason_message: `no room ${HOSTILE}` });
  await page.reload();
  await page.getByText(`no room ${HARMLESS}`).waitFor();
  await person.look('Get started', 'start-failed');
  await set({ status: 'deleted', deleted_at: new Date() });
  await page.reload();
  await page.getByText('This needs a sandbox.').first().waitFor();
  await page.getByRole('button', { name: 'Create sandbox' }).click();
  await page.getByText('Starting', { exact: true }).waitFor();
  assert.equal((await sandboxesOf(orgId)).length, 2);
});

test('a plan that is used up refuses the create with its own sentence', async () => {
  const { page, orgId, projectId } = await openOther('owner');
  await site.api.db.updateTable('subscription').set({ plan: ONE.id }).where('org_id', '=', orgId).execute();
  await site.api.makeSandbox('ready', { org_id: orgId, project_id: projectId });
  await page.goto(addressOf(start(orgId)));
  await page.getByRole('button', { name: 'Create sandbox' }).click();
  await page
    .getByRole('alert')
    .getByText('the plan One (one) allows 1 sandbox awake or starting at the same time, and the org has 1')
    .waitFor();
  await page.getByRole('link', { name: 'Overview' }).click();
  await page.getByRole('img', { name: '1 awake or starting, limit of the plan 1' }).waitFor();
});

test('an org with a sandbox that is older than its feed opens its overview, a new one its first run', async () => {
  const { page, orgId, projectId } = await openOther('owner');
  await page.goto(addressOf('/'));
  await page.waitForURL(addressOf(start(orgId)));
  await site.api.makeSandbox('stopped', { org_id: orgId, project_id: projectId });
  await page.goto(addressOf('/'));
  await page.waitForURL(addressOf(`/orgs/${orgId}`));
});

test('steps tick behind many newer entries, and the time of a start outlives a reload', async () => {
  const { db, orgId, projectId } = site.api;
  const { id } = await site.api.makeSandbox('provisioning', { status_changed_at: new Date(Date.now() - 3_600_000) });
  const actor = { kind: 'system', id: null, userId: null } as const;
  await db.transaction().execute(async (trx) => {
    const add = (kind: 'sandbox_connected' | 'sandbox_exec') =>
      insertActivity(trx, { orgId, projectId, sandboxId: id, actor, kind, details: {} });
    await add('sandbox_connected');
    for (let index = 0; index < 60; index += 1) await add('sandbox_exec');
  });
  const { page } = await site.open(`${start()}?sandbox=${id}`);
  await untilDone(page, 'Look around in its terminal');
  await page.getByText(/^3[67]\d\d s$/).waitFor();
});

test('a server that does not listen in time is reported with its port', async () => {
  const { id } = await site.api.makeSandbox('ready');
  const { page } = await site.open(`${start()}?sandbox=${id}`);
  await page.route('**/exec', (route) =>
    route.fulfill({ json: { exitCode: 124, stdout: '', stderr: '', timedOut: false, truncated: false } }),
  );
  await page.getByRole('button', { name: 'Run it, and make a link' }).click();
  await page.getByRole('alert').getByText('Nothing listens on port 3000.').waitFor();
});

test('a viewer sees each step with its reason, and causes no refused request', async () => {
  const { id } = await site.api.makeSandbox('ready', { name: HOSTILE });
  const { person, page } = await site.open('/me', 'viewer');
  const refused: string[] = [];
  page.on('response', (response) => {
    if (response.status() === 403) refused.push(response.url());
  });
  await page.goto(addressOf(`${start()}?sandbox=${id}`));
  await page.getByRole('link', { name: HARMLESS }).waitFor();
  for (const [name, permission] of [
    ['Terminal', 'sandbox.connect'],
    ['Make a key for this', 'api_keys.manage'],
    ['Run it, and make a link', 'sandbox.exec'],
    ['Sleep', 'sandbox.stop'],
    ['Wake', 'sandbox.wake'],
  ] as const)
    await assertDisabled(page, name, new RegExp(`Needs the permission ${permission}\\.`));
  await lookFromTop(person, 'Get started', 'start-viewer');
  assert.deepEqual(refused, []);
  const other = await openOther('viewer');
  await other.page.goto(addressOf(start(other.orgId)));
  await assertDisabled(other.page, 'Create sandbox', /Needs the permission sandbox\.create\./);
});

test('an address with a sandbox of another org, or of none, starts anew', async () => {
  const { page, orgId, userId } = await openOther('owner');
  const { id } = await site.api.makeSandbox('ready', { name: 'elsewhere' });
  for (const sandbox of [id, '../../me', 'sbx_none']) {
    await page.goto(addressOf(`${start(orgId)}?${new URLSearchParams({ sandbox }).toString()}`));
    await page.getByRole('button', { name: 'Create sandbox' }).waitFor();
  }
  await insertMembership(site.api.db, { orgId: site.api.orgId, userId, role: 'owner' });
  await page.goto(addressOf(`${start(orgId)}?sandbox=${id}`));
  await page.getByRole('button', { name: 'Create sandbox' }).waitFor();
  assert.equal(await page.getByText('elsewhere').count(), 0);
});

test('a key is filled into the code and gone with the page; a lost one leads to the list of keys', async () => {
  const { id } = await site.api.makeSandbox('ready', { name: 'with-a-key' });
  const { person, page } = await site.open(`${start()}?sandbox=${id}`);
  const button = page.getByRole('button', { name: 'Make a key for this' });
  let lost = false;
  await page.route('**/api-keys', async (route) => {
    if (route.request().method() !== 'POST' || lost) return await route.continue();
    lost = true;
    await route.fetch({ url: site.url + new URL(route.request().url()).pathname });
    return await route.fulfill({ status: 502 });
  });
  await button.click();
  await page.getByRole('alert').getByText('The key was not created').waitFor();
  await page.getByRole('alert').getByRole('link', { name: 'API keys' }).waitFor();
  await page.getByText('reads an API key from the variable').waitFor();
  await lookFromTop(person, 'Get started', 'start-key-lost');
  await button.click();
  await page.getByText(/It is shown only here, and only once/).waitFor();
  const code = page.locator('code').filter({ hasText: 'export BERTH_API_KEY' }).first();
  const token = site.api.secret(/BERTH_API_KEY=(\S+)/.exec(await code.innerText())?.[1] ?? '');
  assert.equal((await site.api.call('GET', `/v1/sandboxes/${id}`, { token })).status, 200);
  await lookFromTop(person, 'Get started', 'start-key');
  await page.getByRole('link', { name: 'Activity' }).click();
  await page.getByRole('heading', { name: 'Activity' }).waitFor();
  await page.goBack();
  await button.waitFor();
  assert.equal((await page.content()).includes(token), false);
  const kept = await page.evaluate<string>('JSON.stringify({ ...localStorage, ...sessionStorage, ...history.state })');
  assert.equal(kept.includes(token), false);
});
