// The first run of a new service by its owner, with the keyboard alone, on real processes.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import type { Locator, Page } from 'playwright-core';
import { freePort } from '../../../protocol/test/free-port.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { lookFromTop } from '../browser.ts';
import { pressInMain, screenText, stepOf, tabTo, untilDone, untilShown } from '../hands.ts';
import { Shell } from '../snippets/shell.ts';
import { startInstalledConsole, type InstalledConsole } from './installation.ts';

const run = promisify(execFile);
let installed: InstalledConsole;
let page: Page;
let shell: Shell;
before(async () => {
  installed = await startInstalledConsole();
  ({ page } = installed);
  shell = await Shell.start();
});
after(async () => {
  await installed.close();
  await shell.close();
});

const press = (role: 'button' | 'link', name: string): Promise<void> => pressInMain(page, role, name);
const step = (name: string): Locator => stepOf(page, name);
const isDone = (name: string): Promise<void> => untilDone(page, name);
const shows = (what: string, pattern: RegExp): Promise<void> => untilShown(page, what, pattern);

test('the owner of a new service creates, enters, calls, serves, sleeps and wakes a first sandbox', async () => {
  const { berth, person } = installed;
  const refused: string[] = [];
  page.on('response', (response) => {
    if (response.status() === 403) refused.push(response.url());
  });
  await press('button', 'Create sandbox');
  await isDone('Create your first sandbox');
  await step('Create your first sandbox').getByText('Sandbox ready').waitFor();
  const { sandboxes } = await berth.call('GET', `/v1/orgs/${berth.orgId}/sandboxes`);
  const [{ id, name } = { id: '', name: '' }, ...others] = sandboxes as { id: string; name: string }[];
  assert.equal(others.length, 0);
  await person.look('Get started', 'first-run-created');

  await press('link', 'Terminal');
  await page.getByText('Connected', { exact: true }).waitFor();
  await shows('the command is typed', /uname -a; id *$/m);
  assert.doesNotMatch(await screenText(page), /uid=/);
  await page.getByRole('textbox', { name: `Terminal of ${name}` }).waitFor();
  await page.keyboard.press('Enter');
  await shows('the command has run', /uid=\d+/);
  await page.goBack();
  await isDone('Look around in its terminal');

  await press('button', 'Make a key for this');
  await page.getByText(/It is shown only here, and only once/).waitFor();
  await tabTo(page, page.getByRole('radio', { name: 'curl' }), 'Shift+Tab');
  for (const language of ['curl', 'cli', 'typescript'] as const) {
    const code = await step('Do the same from your code').locator('code').first().innerText();
    assert.match(await shell.paste(language, code), /uid=\d+/, language);
    await page.keyboard.press('ArrowRight');
  }
  await isDone('Do the same from your code');

  // These guest daemons share the ports of this machine.
  const port = await freePort();
  await page.route('**/exec', (route) =>
    route.continue({ postData: (route.request().postData() ?? '').replaceAll('3000', String(port)) }),
  );
  await press('button', 'Run it, and make a link');
  await page.getByRole('link', { name: 'Open port 3000 in a new tab' }).waitFor();
  const serves = async (): Promise<boolean> => {
    const response = await fetch(`http://127.0.0.1:${port}`).catch(() => null);
    return response?.ok === true;
  };
  try {
    await untilTrue('the server outlives its command', serves);
  } finally {
    const { stdout: servers } = await run('pgrep', ['-f', `http.server ${port}$`]).catch(() => ({ stdout: '' }));
    for (const pid of servers.match(/\d+/g) ?? []) process.kill(Number(pid));
  }
  await isDone('Serve something');

  await press('button', 'Sleep');
  await page.getByText('Asleep', { exact: true }).waitFor();
  await press('button', 'Wake');
  await isDone('Let it sleep, and wake it');
  await lookFromTop(person, 'Get started', 'first-run-done');
  await page.getByRole('link', { name: 'Overview' }).click();
  await page.getByRole('region', { name: 'To set up' }).getByText('Invite somebody').waitFor();
  await person.look('Overview', 'first-run-overview');
  assert.deepEqual([refused, person.complaints], [[], []]);
  assert.equal((await berth.get(id)).status, 'ready');
});
