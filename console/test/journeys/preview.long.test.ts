// Preview links by the keyboard alone: a server in the sandbox, a team link, a public link, a role
// that may not share, a revocation.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { goTo, Person } from '../../../api/test/pages/browser.ts';
import { PASSWORD } from '../../../api/test/pages/site.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { freePort } from '../../../protocol/test/free-port.ts';
import { PICTURES, SIZES } from '../browser.ts';
import { pressInMain, tabTo, untilShown } from '../hands.ts';
import { inviteMember, startInstalledConsole, type InstalledConsole } from '../installed/installation.ts';

const HEADING = 'Directory listing for /';
const STRANGER = 'sam@example.test';

let installed: InstalledConsole;
let member: Person;
let page: Page;
let address: string;
let port: number;
before(async () => {
  // Previews have names below localhost, with the port of the service.
  installed = await startInstalledConsole({ BERTH_PORT: String(await freePort()) });
  const { berth } = installed;
  const { id } = await berth.create({ name: 'serves', projectId: await berth.makeProject({ name: 'lab' }) });
  await berth.until(id, ({ status }) => status === 'ready');
  address = `${berth.url}/console/sandboxes/${id}`;
  ({ person: member, page } = await inviteMember(installed, 'maya@example.test', 'Maya Member'));
  // Guest daemons of the fake driver share the ports of this machine.
  port = await freePort();
});
after(() => installed.close());

/** Returns the URL that the page shows. */
async function createLink(audience: 'Team' | 'Public'): Promise<string> {
  await pressInMain(page, 'button', 'Create link');
  const dialog = page.getByRole('dialog', { name: 'Create a link' });
  await tabTo(page, dialog.getByLabel('Port', { exact: true }));
  await page.keyboard.type(String(port));
  if (audience === 'Public') {
    await tabTo(page, dialog.getByLabel('Team'));
    await page.keyboard.press('ArrowDown');
  }
  await page.keyboard.press('Enter');
  await page.getByText(`The ${audience.toLowerCase()} link is created`).waitFor();
  return (await openLink().getAttribute('href')) ?? '';
}

const openLink = () => page.getByRole('status').getByRole('link', { name: `Open port ${port} in a new tab` });

/** Presses the link; resolves when the new tab shows the listing of the server. */
async function followLink(): Promise<void> {
  const opened = page.context().waitForEvent('page');
  await tabTo(page, openLink());
  await page.keyboard.press('Enter');
  const tab = await opened;
  await tab.getByRole('heading', { name: HEADING }).waitFor();
  await tab.close();
}

/** Opens a URL in a browser without a sign-in. */
async function visit(url: string): Promise<Person> {
  const visitor = await Person.make(installed.browser, PICTURES, SIZES);
  await visitor.open(url);
  return visitor;
}

test('a member serves a folder in the terminal, and opens it by a team link', async () => {
  await goTo(page, address);
  await pressInMain(page, 'link', 'Terminal');
  await page.getByText('Connected', { exact: true }).waitFor();
  await untilShown(page, 'the prompt', /\$ *$/m);
  await tabTo(page, page.getByRole('textbox', { name: /^Terminal of / }));
  await page.keyboard.type(`python3 -m http.server ${port}`);
  await page.keyboard.press('Enter');
  await untilShown(page, 'the server listens', /^Serving HTTP/m);
  await page.keyboard.press('Control+Shift+Escape');
  await tabTo(page, page.getByRole('link', { name: 'Previews', exact: true }));
  await page.keyboard.press('Enter');
  await page.getByText('No public links').waitFor();
  await createLink('Team');
  await followLink();
});

test('a team link opens for another member, and not for a stranger', async () => {
  await pressInMain(page, 'button', 'Done');
  const url = await createLink('Team');
  const olive = await installed.page.context().newPage();
  await goTo(olive, url);
  await olive.getByRole('heading', { name: HEADING }).waitFor();
  assert.equal(new URL(olive.url()).search, '', 'without the token');
  await olive.close();

  const { person: stranger } = await inviteMember(installed, STRANGER, 'Sam Stranger', 'viewer');
  await leaveOrg(stranger.page);
  await stranger.open(url);
  await stranger.look('You have no access to this preview', 'preview-stranger');
  const nobody = await visit(url);
  assert.equal(await nobody.heading(), 'Sign in');
  await nobody.fill('Email address', STRANGER);
  await nobody.fill('Password', PASSWORD);
  await nobody.enter();
  assert.equal(await nobody.heading(), 'You have no access to this preview');
});

async function leaveOrg(at: Page): Promise<void> {
  await goTo(at, `${installed.berth.url}/console/orgs/${installed.berth.orgId}/settings`);
  await pressInMain(at, 'button', 'Leave org');
  await tabTo(at, at.getByRole('alertdialog').getByRole('button', { name: 'Leave org' }));
  await at.keyboard.press('Enter');
  await at.getByRole('heading', { name: 'You are not a member of any org yet' }).waitFor();
}

test('an operator creates no public link, and reads which permission is missing', async () => {
  const operator = await inviteMember(installed, 'oscar@example.test', 'Oscar Operator', 'operator');
  await goTo(operator.page, `${address}/previews`);
  await pressInMain(operator.page, 'button', 'Create link');
  const dialog = operator.page.getByRole('dialog');
  await tabTo(operator.page, dialog.getByLabel('Port', { exact: true }));
  await operator.page.keyboard.type(String(port));
  await tabTo(operator.page, dialog.getByLabel('Team'));
  await operator.page.keyboard.press('ArrowDown');
  await tabTo(operator.page, dialog.getByRole('button', { name: 'Create link' }));
  await dialog.getByText('Needs the permission sandbox.preview.share').waitFor();
  await operator.page.keyboard.press('Enter');
  await operator.page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  await operator.page.getByText('No public links').waitFor();
  assert.deepEqual(operator.person.complaints, []);
});

test('a public link of a member opens without a sign-in, until it is revoked', async () => {
  await pressInMain(page, 'button', 'Done');
  const url = await createLink('Public');
  await followLink();
  const visitor = await visit(url);
  await visitor.page.getByRole('heading', { name: HEADING }).waitFor();

  await pressInMain(page, 'button', `Revoke the link to port ${port}`);
  await tabTo(page, page.getByRole('alertdialog').getByRole('button', { name: 'Revoke link' }));
  await page.keyboard.press('Enter');
  await page.getByText('No public links').waitFor();
  for (const reader of [visitor, await visit(url)]) {
    await untilTrue('the link is dead', async () => {
      await reader.open(url);
      return (await reader.heading()) === 'This link was revoked';
    });
  }
  assert.deepEqual(member.complaints, []);
});
