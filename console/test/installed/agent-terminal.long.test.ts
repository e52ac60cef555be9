// The terminal of the scripted agent in a real browser: one program for two pages, over a reload
// and a sleep.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import type { FakeInstallation } from '../../../api/test/fake-installation.ts';
import type { Person } from '../../../api/test/pages/browser.ts';
import { pressInMain, screenText, untilShown } from '../hands.ts';
import { startInstalledConsole, type InstalledConsole } from './installation.ts';

let installed: InstalledConsole;
let berth: FakeInstallation;
let person: Person;
let page: Page;
let address: string;
before(async () => {
  installed = await startInstalledConsole({ BERTH_SCRIPTED_AGENT: '1' });
  ({ berth, person, page } = installed);
  const { id } = await berth.create({ name: 'shared', projectId: await berth.makeProject({ name: 'lab' }) });
  await berth.until(id, ({ status }) => status === 'ready');
  address = `${berth.url}/console/sandboxes/${id}`;
});
after(() => installed.close());

async function program(shown: Page): Promise<string> {
  await shown.getByText('Connected', { exact: true }).waitFor();
  await untilShown(shown, 'the program', /^scripted agent \d+$/m);
  return /scripted agent (\d+)/.exec(await screenText(shown))?.[1] ?? '';
}

async function type(shown: Page, line: string): Promise<void> {
  await shown.getByRole('textbox', { name: /^Terminal of / }).focus();
  await shown.keyboard.type(line);
  await shown.keyboard.press('Enter');
}

test('pages share the program of the agent, which keeps the sandbox awake, over reload and sleep', async () => {
  await person.open(`${address}/agents`);
  await page.getByRole('link', { name: 'Open its terminal' }).click();
  const pid = await program(page);
  await page.getByText(/^While it is open, this terminal keeps the sandbox awake\./).waitFor();
  const other = await page.context().newPage();
  await other.goto(`${address}/terminal?session=agent`);
  assert.equal(await program(other), pid);
  await type(page, 'from one page');
  await untilShown(other, 'the keys of the other page', /^heard: from one page$/m);
  await other.close();

  await page.reload();
  assert.equal(await program(page), pid);
  const sleeper = await page.context().newPage();
  await sleeper.goto(address);
  await pressInMain(sleeper, 'button', 'Sleep');
  await sleeper.getByText('Asleep', { exact: true }).waitFor();
  await page.getByRole('alert').filter({ hasText: 'The sandbox is no longer awake.' }).waitFor();
  await pressInMain(sleeper, 'button', 'Wake');
  await sleeper.close();
  await page.reload();
  assert.equal(await program(page), pid);

  await type(page, 'quit');
  await page.getByText('The program has ended with exit code 0.').waitFor();
  await page.getByRole('button', { name: 'Start again' }).click();
  assert.notEqual(await program(page), pid);
});

test('the sessions of the sandbox have the terminal once, and lead to it', async () => {
  await page.goto(`${address}/agents`);
  await page.getByText('In its terminal', { exact: true }).waitFor();
  const links = page.getByRole('link', { name: /^Open Codex, ags_/ });
  assert.equal(await links.count(), 1);
  await links.click();
  await program(page);
  assert.match(page.url(), /\/terminal\?session=agent$/);
  assert.deepEqual(person.complaints, []);
});
