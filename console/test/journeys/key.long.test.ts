// The life of an API key on a service without TLS, on real processes: created, copied, used by the
// code that the console shows, revoked.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import type { FakeInstallation } from '../../../api/test/fake-installation.ts';
import type { Person } from '../../../api/test/pages/browser.ts';
import { until } from '../../../os/test/until.ts';
import { startInstalledConsole, type InstalledConsole } from '../installed/installation.ts';
import { Shell } from '../snippets/shell.ts';

/** Browsers trust no name over plain http, apart from localhost. */
const PUBLIC_HOST = 'berth.example.test';
const DAY_MS = 86_400_000;

let installed: InstalledConsole;
let berth: FakeInstallation;
let person: Person;
let page: Page;
let shell: Shell;
let key = '';
let code = '';
before(async () => {
  installed = await startInstalledConsole({ BERTH_PUBLIC_URL: `http://${PUBLIC_HOST}` });
  ({ berth, person, page } = installed);
  shell = await Shell.start();
  // Resolves the name as the browser does, and prints the status after the body.
  const curlrc = [
    `connect-to = "${PUBLIC_HOST}:80:${new URL(berth.url).host}"`,
    String.raw`write-out = "\n%{http_code}"`,
    'silent',
  ];
  await writeFile(join(shell.folder, '.curlrc'), curlrc.join('\n'));
});
after(async () => {
  await installed.close();
  await shell.close();
});

const press = (name: string): Promise<void> => page.getByRole('button', { name, exact: true }).click();
const follow = (name: string): Promise<void> => page.getByRole('link', { name, exact: true }).first().click();
const row = (): Locator => page.getByRole('row', { name: /nightly/ });

/** Presses a button that copies. Returns the text that another program gets from the clipboard. */
async function copied(name: string): Promise<string> {
  await press(name);
  await page.getByText('Copied', { exact: true }).waitFor();
  const editor = await page.context().newPage();
  await editor.setContent('<textarea></textarea>');
  await editor.locator('textarea').press('Control+V');
  const text = await editor.locator('textarea').inputValue();
  await editor.close();
  return text;
}

/** Runs the code that the page has shown, with the key. Returns the status and the body. */
async function runCode(): Promise<[status: string, body: Record<string, Record<string, unknown>>]> {
  const output = await shell.paste('curl', code, { BERTH_API_KEY: key, CURL_HOME: shell.folder });
  const lines = output.trimEnd().split('\n');
  const status = lines.pop() ?? '';
  return [status, JSON.parse(lines.join('\n')) as Record<string, Record<string, unknown>>];
}

test('a new key is copied without the clipboard of scripts, and is gone when its dialog closes', async () => {
  assert.deepEqual(await page.evaluate("[isSecureContext, 'clipboard' in navigator]"), [false, false]);
  await follow('API keys');
  await press('Create key');
  await page.getByLabel('Name').fill('nightly');
  await page.getByLabel('Run sandboxes').check();
  await page.getByLabel('Expires').selectOption('in 90 days');
  await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
  const dialog = page.getByRole('alertdialog', { name: 'Copy the key now' });
  const shown = await dialog.locator('code').first().innerText();
  key = await copied('Copy API key');
  assert.equal(key, shown);
  await press('I have stored it');
  await row().waitFor();
  await page.reload();
  await row().getByText('Active').waitFor();
  const kept = await page.evaluate<string>('JSON.stringify({ ...localStorage, ...sessionStorage, ...history.state })');
  assert.ok(!(await page.content()).includes(key) && !kept.includes(key));
  const expires = Date.parse((await row().locator('time').first().getAttribute('datetime')) ?? '');
  assert.equal(Math.round((expires - Date.now()) / DAY_MS), 90);
  await row().getByText('never', { exact: true }).waitFor();
});

test('the curl that the console shows creates the sandbox with the key, and nothing beyond its scopes', async () => {
  await follow('Sandboxes');
  await follow('Create sandbox');
  await page.getByLabel('Name').fill('by-curl');
  await page.getByText('The same as code').click();
  code = await copied('Copy the code: Create sandbox');
  assert.match(code, /^curl -X POST http:\/\/berth\.example\.test\/v1\//);
  const [status, { sandbox }] = await runCode();
  assert.deepEqual([status, sandbox?.['name']], ['201', 'by-curl']);
  await berth.until(String(sandbox?.['id']), (one) => one.status === 'ready');
  await follow('Sandboxes');
  await page.getByRole('row', { name: /by-curl.*Ready/ }).waitFor();
  const headers = { authorization: `Bearer ${key}` };
  assert.equal((await fetch(`${berth.url}/v1/orgs/${berth.orgId}/members`, { headers })).status, 403);
});

test('the list shows the last use of the key, and a revoked key is refused', async () => {
  await follow('API keys');
  // The use is recorded beside the call.
  await until('the list shows the last use', async () => {
    await page.reload();
    await row().waitFor();
    return (await row().getByText('never', { exact: true }).count()) === 0 ? true : null;
  });
  const used = Date.parse((await row().locator('time').last().getAttribute('datetime')) ?? '');
  assert.ok(used <= Date.now());
  await press('Revoke nightly');
  await page.getByRole('alertdialog', { name: 'Revoke nightly?' }).waitFor();
  await press('Revoke key');
  await row().getByText('Revoked', { exact: true }).waitFor();
  const [status, { error }] = await runCode();
  assert.deepEqual([status, error?.['code']], ['401', 'unauthenticated']);
  assert.deepEqual(person.complaints, []);
});
