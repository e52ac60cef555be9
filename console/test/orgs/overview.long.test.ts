// The overview of an org in a real browser.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { insertMembership } from '../../../api/src/store/people/identity.ts';
import { insertActivity } from '../../../api/src/store/activity/activity.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { addressOf, HARMLESS, HOSTILE, startConsole, type ConsoleSite } from '../browser.ts';

const DAY_MS = 86_400_000;

let site: ConsoleSite;
let overview: string;
before(async () => {
  site = await startConsole();
  overview = `/orgs/${site.api.orgId}`;
});
after(() => site.close());

const part = (page: Page, name: string) => page.getByRole('region', { name });

/** Addresses of requests that the service refused. */
function refusals(page: Page): string[] {
  const refused: string[] = [];
  page.on('response', (response) => {
    if (response.status() === 403) refused.push(response.url());
  });
  return refused;
}

test('a new org shows what is left to set up, which its data tick and a press hides', async () => {
  const { person, page } = await site.open(overview);
  const list = part(page, 'To set up');
  await list.getByText('Create the first sandbox').waitFor();
  // The org of the tests has a key, and the person who looks is its second member.
  assert.deepEqual(await list.getByRole('listitem').allInnerTexts(), [
    'To do\nCreate the first sandbox',
    'Done\nMake an API key',
    'Done\nInvite somebody',
    'To do\nSet a cap on machine hours',
  ]);
  await part(page, 'Sandboxes').getByText('No sandboxes yet').waitFor();
  await person.look('Overview', 'overview-new');

  await site.api.makeSandbox('stopped', { name: 'first' });
  await site.api.call('PATCH', `/v1/orgs/${site.api.orgId}/subscription/usage-guardrails`, {
    token: (await site.api.makeSession({ role: 'owner' })).token,
    body: { sandboxMachineHourLimit: 20 },
  });
  await page.reload();
  await part(page, 'Activity').getByText('Usage caps changed').waitFor();
  const stored = `localStorage.getItem('berth.checklist.${site.api.orgId}')`;
  await untilTrue('the list is done', async () => (await page.evaluate(stored)) === 'hidden');
  await list.waitFor({ state: 'detached' });
});

test('a hidden list stays hidden', async () => {
  const { orgId } = await site.api.makeOrg();
  const { page, userId } = await site.open('/me');
  await insertMembership(site.api.db, { orgId, userId, role: 'admin' });
  await page.goto(addressOf(`/orgs/${orgId}`));
  await page.getByRole('button', { name: 'Hide this list' }).click();
  await part(page, 'To set up').waitFor({ state: 'detached' });
  const sent: string[] = [];
  page.on('request', (request) => sent.push(new URL(request.url()).pathname));
  await page.reload();
  await part(page, 'Activity').getByRole('listitem').first().or(page.getByText('No activity yet')).waitFor();
  assert.ok(sent.includes(`/v1/orgs/${orgId}/activity`));
  assert.deepEqual(
    sent.filter((path) => /\/(?:api-keys|invitations)$/.test(path)),
    [],
    'a hidden list reads nothing',
  );
  assert.equal(await part(page, 'To set up').count(), 0);
});

test('counts, hours with a forecast, failures with reasons and the newest entries are live', async () => {
  const { db, orgId, projectId } = site.api;
  const startedAt = new Date(Date.now() - 10 * DAY_MS);
  await db
    .updateTable('subscription')
    .set({ started_at: startedAt, period_anchor: startedAt })
    .where('org_id', '=', orgId)
    .execute();
  const [from, to] = [3, 2.5].map((days) => new Date(Date.now() - days * DAY_MS).toISOString());
  const during = `[${from},${to})`;
  const interval = { sandbox_id: 'sbx_used', org_id: orgId, project_id: projectId, end_user_id: null, during };
  await db
    .insertInto('usage_interval')
    .values({ id: 'use_a', ...interval, vcpu: 1, memory_gb: 2, disk_gb: 10 })
    .execute();
  await site.api.makeSandbox('ready', { name: 'api-review' });
  const failure = { status_reason_code: 'vm_lost', status_reason_message: `QEMU exited ${HOSTILE}` };
  await site.api.makeSandbox('failed', { name: 'load-test', ...failure });
  const { person, page } = await site.open(overview);
  await part(page, 'Sandboxes').getByText('1 awake or starting').waitFor();
  await part(page, 'Failed sandboxes')
    .getByRole('row', { name: /load-test/ })
    .waitFor();
  await part(page, 'Failed sandboxes').getByText(`QEMU exited ${HARMLESS}`).waitFor();
  await part(page, 'Machine hours')
    .getByText(/^\d+ h by the end of the period; the cap is reached on /)
    .waitFor();
  await part(page, 'Waiting for you').getByText('No agent waits for you').waitFor();
  await person.look('Overview', 'overview');

  const { id } = await site.api.makeSandbox('failed', { name: 'late-one', ...failure });
  await db.transaction().execute(async (trx) => {
    const actor = { kind: 'system', id: null, userId: null } as const;
    await insertActivity(trx, { orgId, sandboxId: id, actor, kind: 'sandbox_failed', details: {} });
  });
  await part(page, 'Failed sandboxes').getByText('late-one').waitFor();
  await part(page, 'Sandboxes').getByRole('link', { name: 'Failed 2' }).click();
  await page.getByRole('heading', { name: 'Sandboxes', exact: true }).waitFor();
  await untilTrue('the list has the failed ones', async () => (await page.locator('tbody tr').count()) === 2);
});

test('a viewer sees all but the hours, learns why, and causes no refused request', async () => {
  const { person, page } = await site.open('/me', 'viewer');
  const refused = refusals(page);
  await page.goto(addressOf(overview));
  await part(page, 'Machine hours')
    .getByText(/^Needs the permission billing\.read\. The roles owner, admin, and member have it/)
    .waitFor();
  await part(page, 'Failed sandboxes').getByText('load-test').waitFor();
  await part(page, 'Activity').getByRole('listitem').first().waitFor();
  assert.equal(await part(page, 'To set up').count(), 0);
  await person.look('Overview', 'overview-viewer');
  assert.deepEqual(refused, []);
});
