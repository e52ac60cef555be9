// The console against real processes: API, host daemon with its fake driver, guest daemons.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import type { FakeInstallation } from '../../../api/test/fake-installation.ts';
import type { EndedTest, Person } from '../../../api/test/pages/browser.ts';
import { startInstalledConsole, type InstalledConsole } from './installation.ts';

let installed: InstalledConsole;
let berth: FakeInstallation;
let person: Person;
let page: Page;
before(async () => {
  installed = await startInstalledConsole();
  ({ berth, person, page } = installed);
});
afterEach((t) => person.explain(t as EndedTest));
after(() => installed.close());

const press = (name: string): Promise<void> => page.getByRole('button', { name, exact: true }).click();
const untilStatus = (status: string): Promise<void> => page.getByText(status, { exact: true }).waitFor();

test('the owner of a new service creates a sandbox, lets it sleep, wakes and deletes it', async () => {
  await page.getByRole('link', { name: 'Sandboxes' }).click();
  await page.getByRole('link', { name: 'Create sandbox' }).click();
  await page.getByLabel('Name').fill('first');
  await press('Create sandbox');
  await page.getByRole('heading', { name: 'first' }).waitFor();
  await untilStatus('Ready');
  const { sandboxes } = await berth.call('GET', `/v1/orgs/${berth.orgId}/sandboxes`);
  const { id } = (sandboxes as { id: string }[])[0] ?? { id: '' };
  assert.match((await berth.exec(id, 'id -un')).stdout, /\S/);

  await press('Sleep');
  await untilStatus('Asleep');
  assert.equal((await berth.get(id)).status, 'stopped');
  await press('Wake');
  await untilStatus('Ready');
  await press('Delete');
  await press('Delete sandbox');
  await page.getByText('No sandboxes yet').waitFor();
  assert.equal((await berth.until(id, ({ status }) => status === 'deleted')).status, 'deleted');
  assert.deepEqual(person.complaints, []);
});

test('a look at a page neither wakes a sandbox nor counts as its use', async () => {
  const projectId = await berth.makeProject({ name: 'lab' });
  const { id } = await berth.create({ projectId, name: 'looked-at' });
  const { lastActiveAt } = await berth.until(id, ({ status }) => status === 'ready');
  await berth.call('POST', `/v1/sandboxes/${id}/sleep`);
  await person.open(`${berth.url}/console/sandboxes/${id}`);
  await untilStatus('Asleep');
  await page.getByRole('link', { name: 'Sandboxes' }).first().click();
  await page.getByRole('row', { name: /looked-at.*Asleep/ }).waitFor();
  const { status, lastActiveAt: after } = await berth.get(id);
  assert.deepEqual({ status, after }, { status: 'stopped', after: lastActiveAt });
});
