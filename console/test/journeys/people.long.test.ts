// People of an org, in two browsers: an invitation, the pages of a viewer, a promotion, a removal.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type { Page } from 'playwright-core';
import { Person } from '../../../api/test/pages/browser.ts';
import { mailedToken, PASSWORD } from '../../../api/test/pages/site.ts';
import { deadlineOf, until } from '../../../os/test/until.ts';
import { addressOf, assertDisabled, PICTURES, SIZES, startConsole, type ConsoleSite } from '../browser.ts';

const EMAIL = 'vera@example.test';
const DEADLINE_MS = 60_000;

let site: ConsoleSite;
let owner: Page;
let vera: Person;
let page: Page;
let orgPath: string;
let sandboxId: string;
/** Requests of the viewer that the service refused for a missing permission. */
const refused: string[] = [];
before(async () => {
  site = await startConsole();
  orgPath = `/orgs/${site.api.orgId}`;
  ({ id: sandboxId } = await site.api.makeSandbox('ready', { name: 'awake-one' }));
  await site.api.makeSandbox('stopped', { name: 'asleep-one' });
  ({ page: owner } = await site.open(`${orgPath}/members`));
});
after(() => site.close());

test('an owner invites a viewer, who joins by the link of the mail', async () => {
  await owner.getByRole('button', { name: 'Invite' }).click();
  await owner.getByLabel('Email address').fill(EMAIL);
  await owner.getByRole('dialog').getByLabel('Viewer').check();
  await owner.getByRole('button', { name: 'Send invitation' }).click();
  await owner.getByRole('row', { name: /vera@example\.test.*Viewer/ }).waitFor();
  await site.api.mailInvitations();

  vera = await Person.make(site.browser, PICTURES, SIZES);
  ({ page } = vera);
  page.setDefaultTimeout(deadlineOf(DEADLINE_MS));
  page.on('response', (response) => {
    if (response.status() === 403) refused.push(`${response.request().method()} ${response.url()}`);
  });
  const token = mailedToken(site.api, EMAIL, '/invitation');
  await vera.open(`${site.api.context.settings.publicUrl}/invitation?token=${token}`);
  await page.getByLabel('Your name').fill('Vera Viewer');
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByLabel('Repeat the password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Create the account and accept' }).click();
  await page.getByRole('link', { name: 'Continue' }).click();
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  // The page of the owner follows.
  await owner.getByRole('row', { name: /Vera Viewer.*Viewer/ }).waitFor();
  await owner.getByText('None.', { exact: true }).waitFor();
});

/** Buttons of a page: the permission that each lacks, or null if it works. */
type Buttons = Readonly<Record<string, string | null>>;

const SANDBOX: Buttons = {
  Terminal: 'sandbox.connect',
  Sleep: 'sandbox.stop',
  Wake: 'sandbox.wake',
  Resize: 'sandbox.resize',
  Delete: 'sandbox.destroy',
};
const PAGES: readonly (readonly [path: string, Buttons])[] = [
  ['{org}/start', { 'Create sandbox': 'sandbox.create' }],
  ['{org}/sandboxes', { 'Create sandbox': 'sandbox.create', 'Ready\n1': null, 'Asleep\n1': null }],
  ['{org}/sandboxes/new', { 'Copy the code: Create sandbox': null, 'Create sandbox': 'sandbox.create' }],
  [
    '{org}/projects',
    {
      'Create project': 'project.create',
      'Edit First project': 'project.update',
      'Model keys of First project': 'agent_credentials.manage',
      'Delete First project': 'project.delete',
    },
  ],
  ['{org}/usage', { 'Change cap': 'usage_guardrails.manage' }],
  ['{org}/subscription', { 'Choose Sold': 'billing.manage' }],
  [
    '{org}/members',
    {
      Invite: 'org.members.manage',
      'Change role of Olive Owner': 'org.owners.manage',
      'Remove Olive Owner': 'org.owners.manage',
      'Change role of Ada Lovelace': 'org.owners.manage',
      'Remove Ada Lovelace': 'org.owners.manage',
      'Change role of Vera Viewer': 'org.members.manage',
      Leave: null,
    },
  ],
  ['{org}/api-keys', { 'Create key': 'api_keys.manage' }],
  ['{org}/settings', { Save: 'org.update', 'Copy the id of the org': null, 'Leave org': null }],
  ['/agent-sessions?needsYou=true', {}],
  ['/service/hosts', {}],
  ['{sandbox}', { ...SANDBOX, 'Copy Id': null }],
  ['{sandbox}/terminal', SANDBOX],
  ['{sandbox}/agents', { ...SANDBOX, 'New session': 'agent_session.send' }],
  [
    '{sandbox}/files',
    {
      ...SANDBOX,
      'New file': 'sandbox.files.write',
      'New folder': 'sandbox.files.write',
      Upload: 'sandbox.files.write',
      Refresh: null,
      code: null,
    },
  ],
  ['{sandbox}/metrics', SANDBOX],
  ['{sandbox}/previews', { ...SANDBOX, 'Create link': null }],
];

/** Names of the buttons in the page, and the permissions that the reasons of those off name. */
const buttonsOf = (): Promise<Buttons> =>
  page.evaluate(`Object.fromEntries([...document.querySelectorAll('main button')].map((button) => {
    const reason = document.getElementById(button.getAttribute('aria-describedby'))?.innerText ?? '';
    const off = button.getAttribute('aria-disabled') === 'true';
    const lacks = /^Needs the permission ([a-z_.]+)\\./.exec(reason)?.[1] ?? reason;
    return [button.getAttribute('aria-label') ?? button.innerText, off ? lacks : null];
  }))`);

test('each button that a viewer may not press is off and names the permission; nothing is refused', async () => {
  for (const [template, expected] of PAGES) {
    const path = template.replace('{org}', orgPath).replace('{sandbox}', `/sandboxes/${sandboxId}`);
    await page.goto(addressOf(path));
    let found: Buttons = {};
    await until(
      () => `${path} has ${JSON.stringify(found)}`,
      async () => {
        found = await buttonsOf();
        return isDeepStrictEqual(found, expected) ? true : null;
      },
      DEADLINE_MS,
    );
  }
  await page.goto(addressOf(`${orgPath}/sandboxes/new`));
  await page.getByLabel('Name').press('Enter');
  await assertDisabled(page, 'Create sandbox', /Needs the permission sandbox\.create/);
  await page.keyboard.press('Escape');
  await vera.look('Create sandbox', 'viewer-create');

  await page.getByRole('link', { name: 'Sandboxes', exact: true }).first().click();
  await page.getByRole('checkbox', { name: 'Choose all' }).check();
  for (const name of ['Sleep', 'Wake', 'Delete']) await assertDisabled(page, name, /Needs the permission sandbox\./);
  await page.getByRole('link', { name: 'awake-one' }).click();
  await page.getByRole('heading', { name: 'awake-one' }).waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: /^Command/ }).fill('sleep');
  const command = page.getByRole('option', { name: /^Sleep.*Needs the permission sandbox\.stop/ });
  assert.equal(await command.getAttribute('aria-disabled'), 'true');
  await page.keyboard.press('Escape');
  assert.deepEqual(refused, []);
});

test('a promotion makes the buttons work without a reload', async () => {
  await page.goto(addressOf(`/sandboxes/${sandboxId}`));
  await assertDisabled(page, 'Sleep', /Needs the permission sandbox\.stop/);
  await page.evaluate('globalThis.isFirstPage = true');
  await owner.getByRole('button', { name: 'Change role of Vera Viewer' }).click();
  await owner.getByRole('dialog').getByLabel('Operator').check();
  await owner.getByRole('dialog').getByRole('button', { name: 'Change role' }).click();
  await page.locator('main button:not([aria-disabled])', { hasText: 'Sleep' }).click();
  await page.getByText('Falling asleep', { exact: true }).waitFor();
  assert.deepEqual(
    site.api.steps.map(({ kind, step }) => [kind, step.sandboxId]),
    [['sleep', sandboxId]],
  );
  // The permissions of an operator end here.
  await page.getByRole('link', { name: 'Members' }).click();
  await assertDisabled(page, 'Invite', /Needs the permission org\.members\.manage/);
  await page.goBack();
  await page.getByRole('heading', { name: 'awake-one' }).waitFor();
  assert.equal(await page.evaluate('globalThis.isFirstPage'), true);
});

test('a removal covers the page, which leads to the remaining orgs', async () => {
  assert.deepEqual(refused, []);
  await owner.getByRole('button', { name: 'Remove Vera Viewer' }).click();
  await owner.getByRole('button', { name: 'Remove member' }).click();
  await page.getByRole('alertdialog', { name: 'You are no longer a member of First org' }).waitFor();
  assert.equal(await page.evaluate('globalThis.isFirstPage'), true);
  await vera.look('awake-one', 'removed');
  await page.getByRole('alertdialog').getByRole('button', { name: 'Go to your orgs' }).click();
  await page.getByRole('heading', { name: 'You are not a member of any org yet' }).waitFor();
  await page.getByRole('alertdialog').waitFor({ state: 'detached' });
  assert.deepEqual(vera.complaints, []);
});
