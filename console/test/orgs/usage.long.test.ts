// Usage and billing in a real browser.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { newId } from '../../../api/src/store/database/ids.ts';
import { SOLD_PLAN } from '../../../api/test/world/payments-stand-in.ts';
import { csvOf } from '../../src/rules/csv.ts';
import { addressOf, assertDisabled, startConsole, type ConsoleSite } from '../browser.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

let site: ConsoleSite;
before(async () => {
  site = await startConsole();
  const startedAt = new Date(Date.now() - 20 * DAY_MS);
  const { db, orgId } = site.api;
  await db
    .updateTable('subscription')
    .set({ started_at: startedAt, period_anchor: startedAt })
    .where('org_id', '=', orgId)
    .execute();
});
after(() => site.close());

/** Adds a closed interval that ended some days ago. */
async function use(daysAgo: number, hours: number, endUserId: string | null, projectId = site.api.projectId) {
  const endsMs = Date.now() - daysAgo * DAY_MS;
  const during = `[${new Date(endsMs - hours * HOUR_MS).toISOString()},${new Date(endsMs).toISOString()})`;
  const size = { vcpu: 1, memory_gb: 2, disk_gb: 10 };
  const whose = { org_id: site.api.orgId, project_id: projectId, end_user_id: endUserId };
  await site.api.db
    .insertInto('usage_interval')
    .values({ id: newId('usageInterval'), sandbox_id: newId('sandbox'), ...whose, ...size, during })
    .execute();
}

test('usage shows period, days and end users, and the cap that an admin sets', async () => {
  for (let day = 1; day < 15; day += 1) await use(day, 2 + ((day * 7) % 5), day % 2 === 0 ? 'customer-7' : null);
  await use(1, 1.5, '=HYPERLINK("http://evil.example.test")');
  const { person, page } = await site.open(`/orgs/${site.api.orgId}/usage`, 'owner');
  const used = page.getByRole('heading', { name: /^[\d.,]+ h, without a cap$/ });
  await used.waitFor();
  await page.getByRole('img', { name: /in 31 days; most on / }).waitFor();
  await page.getByRole('row', { name: /customer-7/ }).waitFor();
  await page.getByText('Show the figures').click();
  await page.getByRole('table', { name: 'By day (UTC)' }).waitFor();
  assert.equal(await page.getByRole('table', { name: 'By day (UTC)' }).getByRole('row').count(), 32);
  await person.look('Usage', 'usage');

  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download CSV' }).click(),
  ]);
  const csv = await readFile(await file.path(), 'utf8');
  assert.match(csv, /^"endUserId","machineHours","estimatedCogsUsd"\r\n"customer-7",\d/);
  assert.match(csv, /"'=HYPERLINK\(""http:\/\/evil\.example\.test""\)",1\.5,/);

  await page.getByRole('button', { name: 'Change cap' }).click();
  await page.getByLabel('Machine hours').fill('-5');
  await page.getByLabel('Machine hours').fill('60');
  await person.look('Usage', 'usage-caps');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: /^[\d.,]+ h of 60 h$/ }).waitFor();
  const usage = (await site.api.call('GET', `/v1/orgs/${site.api.orgId}/usage`)).body;
  assert.deepEqual([usage.sandboxMachineHourLimit, usage.sandboxOverageEnabled], [60, false]);
  await person.look('Usage', 'usage-capped');
});

test('a project has its own usage, and the address keeps the choice', async () => {
  const { page } = await site.open(`/orgs/${site.api.orgId}/usage?project=${site.api.projectId}`, 'owner');
  await page.getByRole('heading', { name: /^[\d.,]+ h(?: of|,)/ }).waitFor();
  assert.equal(await page.getByLabel('Project').inputValue(), site.api.projectId);
  await page.getByRole('heading', { name: 'By day (UTC)' }).waitFor();
  assert.equal(await page.getByRole('heading', { name: 'By end user' }).count(), 0);
});

test('a viewer sees why usage and its cap are closed', async () => {
  const { person, page } = await site.open(`/orgs/${site.api.orgId}/usage`, 'viewer');
  await page
    .getByText(/billing\.read/)
    .first()
    .waitFor();
  await person.look('Usage', 'usage-forbidden');
  await assertDisabled(page, 'Change cap', /usage_guardrails\.manage/);
});

test('billing shows the plan, and the plans that an owner can choose', async () => {
  const { person, page } = await site.open(`/orgs/${site.api.orgId}/subscription`, 'owner');
  await page.getByText('Self-hosted').first().waitFor();
  const choose = page.getByRole('button', { name: `Choose ${SOLD_PLAN.name}` });
  await choose.waitFor();
  await person.look('Billing', 'billing');
  let asked = '';
  await page.route('**/billing/checkout', (route) => {
    asked = route.request().postData() ?? '';
    return route.fulfill({ json: { checkout: { url: addressOf('/paid'), expiresAt: null } } });
  });
  await choose.click();
  await page.waitForURL(/\/console\/paid$/);
  assert.deepEqual(JSON.parse(asked), { plan: SOLD_PLAN.id });
});

test('billing says who may choose a plan, and where none is sold', async () => {
  const { page } = await site.open(`/orgs/${site.api.orgId}/subscription`, 'viewer');
  await assertDisabled(page, `Choose ${SOLD_PLAN.name}`, /billing\.manage/);
  await page.route('**/plans', (route) => route.fulfill({ json: { plans: [] } }));
  await page.reload();
  await page.getByText('This installation sells no plans. Its operator assigns them.').waitFor();
});

test('a CSV cell that starts like a formula is text', () => {
  assert.equal(
    csvOf([
      ['a"b', 1],
      ['-1+1', 0.5],
      ['@x', 2],
    ]),
    '"a""b",1\r\n"\'-1+1",0.5\r\n"\'@x",2\r\n',
  );
});
