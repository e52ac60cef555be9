// Actions on many chosen sandboxes, and a list that is longer than the page can hold.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { ActivityKind } from '@berth/contract/route/activity-kinds.ts';
import type { SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { insertActivity } from '../../../api/src/store/activity/activity.ts';
import { copySandbox, startConsole, type ConsoleSite } from '../browser.ts';
import { until } from '../../../os/test/until.ts';

const MANY = 450;
let site: ConsoleSite;
before(async () => {
  site = await startConsole();
});
after(() => site.close());

test('chosen sandboxes sleep and are deleted together; failures are listed by name', async () => {
  const made = [
    await site.api.makeSandbox('ready', { name: 'one' }),
    await site.api.makeSandbox('ready', { name: 'two' }),
    await site.api.makeSandbox('stopped', { name: 'three' }),
  ];
  const { person, page } = await site.open(`/orgs/${site.api.orgId}/sandboxes`);
  await page.getByRole('checkbox', { name: 'Choose all' }).check();
  const bar = page.getByRole('region', { name: 'Chosen sandboxes' });
  await bar.getByText('3 chosen').waitFor();
  await person.look('Sandboxes', 'sandboxes-chosen');
  // A person without a pointer chooses with the space bar.
  await page.getByRole('checkbox', { name: 'Choose one' }).press('Space');
  await bar.getByText('2 chosen').waitFor();
  await bar.getByRole('button', { name: 'Sleep 1 of 2' }).click();
  const stepped = (wanted: string): string[] =>
    site.api.steps.filter(({ kind }) => kind === wanted).map(({ step }) => step.sandboxId);
  await page.getByRole('row', { name: /two.*Falling asleep/ }).waitFor();
  assert.deepEqual(stepped('sleep'), [made[1]?.id]);

  // The service fails for one of them. Escape takes the reason of the pressed button away.
  await page.keyboard.press('Escape');
  await page.getByRole('checkbox', { name: 'Choose all' }).check();
  await page.route(`**/v1/sandboxes/${made[2]?.id ?? ''}/destroy`, (route) =>
    route.fulfill({ status: 503, json: { error: { code: 'host_unavailable', message: 'the host does not respond' } } }),
  );
  await bar.getByRole('button', { name: /^Delete/ }).click();
  const dialog = page.getByRole('alertdialog', { name: /^Delete \d sandboxes\?$/ });
  await dialog.waitFor();
  await person.look('Sandboxes', 'sandboxes-chosen-delete');
  await dialog.getByRole('button', { name: 'Delete them' }).click();
  await bar.getByText('three: the host does not respond').waitFor();
  await person.look('Sandboxes', 'sandboxes-chosen-failed');
  const deleted = stepped('destroy');
  assert.ok(deleted.includes(made[0]?.id ?? '') && !deleted.includes(made[2]?.id ?? ''), deleted.join(', '));
});

test('a rate limit delays an action on many, and loses none', async () => {
  const names = ['paced-1', 'paced-2', 'paced-3'];
  for (const name of names) await site.api.makeSandbox('ready', { name });
  const { page } = await site.open(`/orgs/${site.api.orgId}/sandboxes?q=paced`);
  let refused = 0;
  await page.route('**/v1/sandboxes/*/sleep', async (route) => {
    if (refused >= 3) return await route.continue();
    refused += 1;
    return await route.fulfill({
      status: 429,
      headers: { 'Retry-After': '1' },
      json: { error: { code: 'rate_limited', message: 'too many requests' } },
    });
  });
  await page.getByRole('checkbox', { name: 'Choose all' }).check();
  await page.getByRole('button', { name: 'Sleep', exact: true }).click();
  for (const name of names) await page.getByRole('row', { name: new RegExp(`${name}.*Falling asleep`) }).waitFor();
  assert.equal(refused, 3);
});

test('a long list loads as it scrolls, shows only rows in view, and a change reaches its row', async () => {
  const first = await site.api.makeSandbox('stopped', { name: 'long-00001' });
  await copySandbox(site, first.id, 'long-', MANY - 1);
  const { person, page } = await site.open(`/orgs/${site.api.orgId}/sandboxes?q=long-`);
  await page.getByText('100+ sandboxes').waitFor();
  await until(
    'the page shows the last of all sandboxes',
    async () => {
      await page.evaluate('window.scrollTo(0, document.documentElement.scrollHeight)');
      return (await page.getByRole('row', { name: /long-00450/ }).isVisible()) ? true : null;
    },
    60_000,
  );
  await page.getByText(`${MANY} sandboxes`, { exact: true }).waitFor();
  assert.ok((await page.getByRole('row').count()) < 100);
  await page.evaluate('window.scrollTo(0, 0)');
  await page.getByRole('row', { name: /long-00001/ }).waitFor();
  await person.look('Sandboxes', 'sandboxes-long');

  const listed: string[] = [];
  page.on('request', (request) => {
    if (/\/sandboxes\?/.test(request.url())) listed.push(request.url());
  });
  await site.api.call('POST', `/v1/sandboxes/${first.id}/destroy`);
  await page.getByRole('row', { name: /long-00001.*Deleting/ }).waitFor();
  assert.deepEqual(listed, []);

  // A change while the row is read is not lost.
  const second = (
    await site.api.db.selectFrom('sandbox').select('id').where('name', '=', 'long-00002').executeTakeFirstOrThrow()
  ).id;
  const change = async (status: SandboxStatus, kind: ActivityKind): Promise<void> =>
    await site.api.db.transaction().execute(async (trx) => {
      await trx.updateTable('sandbox').set({ status }).where('id', '=', second).execute();
      const actor = { kind: 'system', id: null, userId: null } as const;
      await insertActivity(trx, { orgId: site.api.orgId, sandboxId: second, actor, kind });
    });
  let reads = 0;
  await page.route(`**/v1/sandboxes/${second}`, async (route) => {
    reads += 1;
    const response = await route.fetch({ url: `${site.url}/v1/sandboxes/${second}` });
    if (reads === 1) {
      const told = page.waitForResponse(/\/activity\/follow\?/);
      await change('failed', 'sandbox_failed');
      await told;
    }
    await route.fulfill({ response });
  });
  await change('running', 'sandbox_running');
  await until('the row was read for both changes', () => Promise.resolve(reads >= 2 ? true : null), 60_000);
  await page.getByRole('row', { name: /long-00002.*Failed/ }).waitFor();
});
