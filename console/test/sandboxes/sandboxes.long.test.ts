// Pages of sandboxes in a real browser; `Person.look` checks each at three widths, light and dark.
// BERTH_TEST_PICTURES=<folder> keeps the screenshots.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  addressOf,
  assertDisabled,
  assertEnabled,
  HARMLESS,
  HOSTILE,
  lookFromTop,
  startConsole,
  type ConsoleSite,
} from '../browser.ts';

let site: ConsoleSite;
let list: string;
before(async () => {
  site = await startConsole();
  list = `/orgs/${site.api.orgId}/sandboxes`;
});
after(() => site.close());

test('an org without sandboxes shows what a sandbox is, and how to create one', async () => {
  const { person, page } = await site.open(list);
  await page.getByText('No sandboxes yet').waitFor();
  await person.look('Sandboxes', 'sandboxes-empty');
});

test('the list shows each status by icon and word, hostile names as text, and leads to a sandbox', async () => {
  const failed = { status_reason_code: 'vm_lost', status_reason_message: 'QEMU exited: out of memory' };
  const made = [
    await site.api.makeSandbox('ready', { name: 'api-review' }),
    await site.api.makeSandbox('running', { name: 'docs-site' }),
    await site.api.makeSandbox('stopped', { name: 'nightly-build-eu-west' }),
    await site.api.makeSandbox('failed', { name: 'load-test', ...failed }),
    await site.api.makeSandbox('ready', { name: HOSTILE }),
  ];
  const { person, page } = await site.open(list);
  await page.getByRole('row', { name: /load-test.*Failed/ }).waitFor();
  assert.equal(await page.getByRole('row').count(), made.length + 1);
  await page.getByText(HARMLESS).waitFor();
  await person.look('Sandboxes', 'sandboxes');
  await page.setViewportSize({ width: 390, height: 844 });
  await page.getByRole('table').waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'api-review' }).click();
  await page.getByRole('heading', { name: 'api-review' }).waitFor();
  await page.locator('h1:focus').waitFor();
  assert.equal(await page.title(), 'api-review · Berth');
});

test('a ready sandbox can sleep, be resized and deleted; wake says why not', async () => {
  const { id } = await site.api.makeSandbox('ready', {
    name: 'ready-one',
    metadata: JSON.stringify({ team: 'core', tier: 1 }),
  });
  const { person, page } = await site.open(`/sandboxes/${id}`);
  await page.getByRole('heading', { name: 'ready-one' }).waitFor();
  await page.getByRole('button', { name: 'Wake' }).waitFor();
  await person.look('ready-one', 'sandbox-ready');
  await assertEnabled(page, 'Sleep', 'Resize', 'Delete');
  await assertDisabled(page, 'Wake', /Not possible while the sandbox is ready; possible while it is asleep or failed/);
  await page.getByRole('button', { name: 'Sleep' }).click();
  await page.getByText('Falling asleep', { exact: true }).waitFor();
  await assertDisabled(page, 'Sleep', /falling asleep already/);
});

test('an awake sandbox shows when it sleeps, and its last use', async () => {
  const lastUse = { last_active_at: new Date(Date.now() - 5 * 60_000), last_active_by: 'connect' } as const;
  const { id } = await site.api.makeSandbox('ready', { name: 'used-one', ...lastUse });
  const { page } = await site.open(`/sandboxes/${id}`);
  await page.getByText(/sleeps unless used: in 2[45]m\. Last kept awake by an open terminal/).waitFor();
});

test('a start that takes longer than 5 s shows its causes', async () => {
  const { db } = site.api;
  const { id, host_id: hostId } = await site.api.makeSandbox('provisioning', {
    name: 'slow-one',
    status_changed_at: new Date(Date.now() - 6_000),
  });
  await db
    .updateTable('host')
    .set({ accelerator: 'tcg', pool_ready: 0 })
    .where('id', '=', hostId ?? '')
    .execute();
  const { person, page } = await site.open(`/sandboxes/${id}`);
  await page.getByText(/emulation is many times slower\. No warm machine was ready/).waitFor();
  await person.look('slow-one', 'sandbox-slow-start');
});

test('a failed sandbox shows the reason of the service, and that nothing is left to wake from', async () => {
  const { id } = await site.api.makeSandbox('failed', {
    name: 'failed-one',
    status_reason_code: 'vm_lost',
    status_reason_message: 'QEMU exited: out of memory',
  });
  const { person, page } = await site.open(`/sandboxes/${id}`);
  await page.getByText('QEMU exited: out of memory').waitFor();
  await page.getByRole('button', { name: 'Wake' }).waitFor();
  await person.look('failed-one', 'sandbox-failed');
  await assertDisabled(page, 'Sleep', /Not possible while the sandbox is failed/);
  await assertDisabled(page, 'Wake', /Neither memory nor disk are left/);
});

test('a delete needs a decision, which Escape takes back, and returns to the list', async () => {
  const { id } = await site.api.makeSandbox('stopped', { name: 'old-one' });
  const { person, page } = await site.open(`/sandboxes/${id}`);
  const button = page.getByRole('button', { name: 'Delete', exact: true });
  await button.click();
  await page.getByRole('alertdialog', { name: 'Delete old-one?' }).waitFor();
  await person.look('old-one', 'sandbox-delete');
  await page.keyboard.press('Escape');
  await page.getByRole('alertdialog').waitFor({ state: 'detached' });
  assert.equal(await page.evaluate('document.activeElement.innerText.trim()'), 'Delete');
  await button.press('Enter');
  await page.getByRole('button', { name: 'Delete sandbox' }).click();
  await page.getByRole('heading', { name: 'Sandboxes' }).waitFor();
  await page.getByText('old-one is being deleted').waitFor();
  assert.deepEqual(
    site.api.steps.filter(({ step }) => step.sandboxId === id).map(({ kind }) => kind),
    ['destroy'],
  );
});

test('a resize sends the changed size', async () => {
  const { id } = await site.api.makeSandbox('stopped', { name: 'small-one' });
  const { person, page } = await site.open(`/sandboxes/${id}`);
  await page.getByRole('button', { name: 'Resize' }).click();
  await page.getByRole('dialog', { name: 'Resize' }).waitFor();
  await person.look('small-one', 'sandbox-resize');
  await page.getByLabel('vCPUs').fill('2');
  await page.getByRole('dialog').getByRole('button', { name: 'Resize' }).click();
  await page.getByText(/^2 vCPU/).waitFor();
});

test('a viewer sees every action disabled, with the permission and the roles that have it', async () => {
  const { id } = await site.api.makeSandbox('ready', { name: 'guarded-one' });
  const { person, page } = await site.open(`/sandboxes/${id}`, 'viewer');
  await page.getByRole('button', { name: 'Sleep' }).waitFor();
  for (const [name, permission] of [
    ['Terminal', 'sandbox.connect'],
    ['Sleep', 'sandbox.stop'],
    ['Wake', 'sandbox.wake'],
    ['Resize', 'sandbox.resize'],
    ['Delete', 'sandbox.destroy'],
  ] as const) {
    await assertDisabled(
      page,
      name,
      new RegExp(`Needs the permission ${permission}\\. The roles owner, admin, member`),
    );
  }
  await page.getByRole('link', { name: 'Terminal' }).click();
  await page.getByRole('heading', { name: 'You may not see this' }).waitFor();
  await page
    .locator('p')
    .getByText(/^Needs the permission sandbox\.connect\./)
    .waitFor();
  await page.getByRole('link', { name: 'Sandboxes' }).first().click();
  await page.getByRole('heading', { name: 'Sandboxes' }).waitFor();
  await assertDisabled(page, 'Create sandbox', /sandbox\.create/);
  await page.keyboard.press('Escape');
  await page.getByRole('tooltip').waitFor({ state: 'hidden' });
  // At another width the button may be below the pointer.
  await page.mouse.move(0, 0);
  await person.look('Sandboxes', 'sandboxes-viewer');
});

test('the form creates one sandbox, even if its response is lost and it is sent again', async () => {
  const { person, page } = await site.open(`${list}/new`);
  await page.getByLabel('Name').fill('from-the-form');
  await page.getByText('More options').click();
  await page.getByLabel('Labels').fill('team=core\n=x');
  await page.getByText('Line 2: the key is missing.').waitFor();
  await person.look('Create sandbox', 'create');
  await page.getByLabel('Labels').fill('team=core');
  await page.getByText('The same as code').click();
  await page.getByText('"metadata":{"team":"core"}').waitFor();
  await page.getByLabel('CLI').check();
  await page.getByText(/--metadata 'team=core'/).waitFor();
  await page.getByLabel('TypeScript').check();
  await page.getByText(/team: "core",/).waitFor();
  await lookFromTop(person, 'Create sandbox', 'create-as-code');
  let lost = false;
  await page.route('**/v1/orgs/*/sandboxes', async (route) => {
    if (route.request().method() !== 'POST' || lost) return await route.continue();
    lost = true;
    await route.fetch({ url: site.url + new URL(route.request().url()).pathname });
    return await route.abort();
  });
  await page.getByRole('button', { name: 'Create sandbox', exact: true }).click();
  await page.getByText('The sandbox was not created').waitFor();
  await page.getByRole('button', { name: 'Create sandbox', exact: true }).click();
  await page.getByRole('heading', { name: 'from-the-form' }).waitFor();
  await page.getByText('Starting', { exact: true }).waitFor();
  const rows = await site.api.db.selectFrom('sandbox').select('id').where('name', '=', 'from-the-form').execute();
  assert.equal(rows.length, 1);
});

test('a status, agent or size that the console does not know is shown as it is', async () => {
  const { id } = await site.api.makeSandbox('ready', { name: 'from-the-future' });
  const { person, page } = await site.open('/wrong');
  await page.route(`**/v1/sandboxes/${id}`, async (route) => {
    const response = await route.fetch({ url: `${site.url}/v1/sandboxes/${id}` });
    const { sandbox } = (await response.json()) as { sandbox: object };
    const changed = { ...sandbox, status: 'hibernating', agent: 'agent_nine', persistencePolicy: 'dreams' };
    await route.fulfill({ response, json: { sandbox: changed } });
  });
  await person.open(`http://berth.example.test/console/sandboxes/${id}`);
  for (const text of ['hibernating', 'agent_nine', 'dreams']) await page.getByText(text, { exact: true }).waitFor();
  await assertEnabled(page, 'Sleep', 'Wake', 'Resize', 'Delete');
});

test('sessions of a sandbox that was shown have its name, those of others its id', async () => {
  const known = await site.api.makeSandbox('ready', { name: 'shown-before' });
  const other = await site.api.makeSandbox('ready', { name: 'never-shown' });
  const { page } = await site.open(`/sandboxes/${known.id}`);
  await page.route('**/v1/agent-sessions?*', (route) =>
    route.fulfill({
      json: {
        sessions: (route.request().url().includes('needsYou') ? [] : [known, other]).map(({ id }, index) => ({
          ...{ id: `ags_${index}`, sandboxId: id, agentLabel: 'Agent', turnState: null },
          ...{ communication: { status: 'available' }, createdAt: new Date().toISOString() },
        })),
        ...{ nextCursor: null, hasMore: false },
      },
    }),
  );
  await page.getByRole('heading', { name: 'shown-before' }).waitFor();
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Agents' }).click();
  await page.getByRole('link', { name: 'shown-before' }).waitFor();
  await page.getByRole('link', { name: other.id }).waitFor();
});

test('a terminal that opens or reconnects asks not to wake its sandbox', async () => {
  const { id } = await site.api.makeSandbox('ready', { name: 'not-woken' });
  const { page } = await site.open('/me');
  const opened = page.waitForEvent('websocket', (socket) => socket.url().includes(`/${id}/terminal`));
  await page.goto(addressOf(`/sandboxes/${id}/terminal`));
  assert.equal(new URL((await opened).url()).searchParams.get('mayWake'), 'false');
});
