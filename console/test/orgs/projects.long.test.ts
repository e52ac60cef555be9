// Projects, their defaults and credentials, in a real browser.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { assertDisabled, HARMLESS, HOSTILE, startConsole, type ConsoleSite } from '../browser.ts';

let site: ConsoleSite;
let path: string;
before(async () => {
  site = await startConsole();
  path = `/orgs/${site.api.orgId}/projects`;
});
after(() => site.close());

async function named(name: string) {
  const { body } = await site.api.call('GET', `/v1/orgs/${site.api.orgId}/projects`);
  return body.projects.find((project: { name: string }) => project.name === name);
}

test('a project is created with defaults, changed and deleted; its token is never shown', async () => {
  const { person, page } = await site.open(path, 'owner');
  await page.getByRole('row', { name: /First project/ }).waitFor();
  await page.getByRole('button', { name: 'Create project' }).click();
  await page.getByLabel('Name').fill('shop');
  await page.getByLabel('Sandboxes serve').selectOption('external');
  await page.getByLabel('Minutes until an idle sandbox sleeps').fill('15');
  await page.getByLabel(/^Wake sleeping sandboxes/).check();
  await page.getByLabel('Default repository').fill('owner/shop');
  await page.getByLabel('Token of the git host').fill('git-secret');
  await person.look('Projects', 'project-create');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('row', { name: /shop.*end users.*sleeps after 15 min.*yes/ }).waitFor();
  const made = await named('shop');
  assert.deepEqual(
    [made.useCase, made.defaultIdleMinutes, made.wakeOnUse, made.defaultRepository, made.hasRepoCredentials],
    ['external', 15, true, 'owner/shop', true],
  );
  await person.look('Projects', 'projects');

  await page.getByRole('button', { name: 'Edit shop' }).click();
  assert.equal(await page.getByLabel('Token of the git host').inputValue(), '');
  await page.getByLabel('Minutes until an idle sandbox sleeps').fill('');
  await page.getByLabel('Cap in machine hours').fill('20');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('row', { name: /shop.*the default time.*20 h/ }).waitFor();
  const changed = await named('shop');
  assert.deepEqual(
    [changed.defaultIdleMinutes, changed.sandboxMachineHourLimit, changed.hasRepoCredentials, changed.wakeOnUse],
    [null, 20, true, true],
  );

  await page.getByRole('button', { name: 'Delete shop' }).click();
  await page.getByRole('button', { name: 'Delete project' }).click();
  await page.getByRole('row', { name: /shop/ }).waitFor({ state: 'detached' });
  assert.equal(await named('shop'), undefined);
});

test('a refused field keeps the input and is named, and hostile names are text', async () => {
  const { page } = await site.open(path, 'owner');
  await page.getByRole('button', { name: 'Create project' }).click();
  await page.getByLabel('Name').fill(HOSTILE);
  await page.getByLabel('Default repository').fill('not a repository');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByLabel('Default repository').and(page.locator('[aria-invalid=true]')).waitFor();
  assert.equal(await page.getByLabel('Name').inputValue(), HOSTILE);
  await page.getByLabel('Default repository').fill('');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('table').getByText(HARMLESS).waitFor();
});

test('model keys are stored and forgotten, and never shown', async () => {
  const { person, page } = await site.open(path, 'owner');
  await page.getByRole('button', { name: 'Model keys of First project' }).click();
  await page.getByRole('textbox', { name: 'Key for Codex' }).fill('sk-model-secret');
  await page.getByRole('button', { name: 'Store the key for Codex' }).click();
  await page.getByText('stored; a key is never shown', { exact: true }).waitFor();
  assert.equal(await page.getByRole('textbox', { name: 'Key for Codex' }).inputValue(), '');
  await person.look('Projects', 'project-models');
  await page.getByRole('button', { name: 'Forget the key for Codex' }).click();
  await page.getByText('stored; a key is never shown', { exact: true }).waitFor({ state: 'detached' });
});

test('a member sees the choice of approvals, and why it may not change it', async () => {
  const { person, page } = await site.open(path, 'member');
  await page.getByRole('button', { name: 'Edit First project' }).click();
  assert.equal(await page.getByLabel('Agents', { exact: true }).isDisabled(), true);
  await page.getByText(/^Needs the permission agent_approvals\.disable\. The roles owner and admin have it/).waitFor();
  await person.look('Projects', 'project-member');
  await page.getByLabel('Minutes until an idle sandbox sleeps').fill('25');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('row', { name: /First project.*sleeps after 25 min/ }).waitFor();
  assert.equal((await named('First project')).agentApprovals, 'ask');
});

test('a viewer sees projects, and why it may not change them', async () => {
  const { page } = await site.open(path, 'viewer');
  await page.getByRole('row', { name: /First project/ }).waitFor();
  await assertDisabled(page, 'Create project', /project\.create/);
  await assertDisabled(page, 'Edit First project', /project\.update/);
  await assertDisabled(page, 'Model keys of First project', /agent_credentials\.manage/);
  await assertDisabled(page, 'Delete First project', /project\.delete/);
});
