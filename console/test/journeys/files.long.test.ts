// Files of a sandbox: a save, a command that changes the file meanwhile, a file that is too long
// for the editor, and a hostile name.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import type { FakeInstallation } from '../../../api/test/fake-installation.ts';
import type { Person } from '../../../api/test/pages/browser.ts';
import { assertDisabled, HARMLESS, HOSTILE } from '../browser.ts';
import { fileEntry, replaceText } from '../hands.ts';
import { startInstalledConsole, type InstalledConsole } from '../installed/installation.ts';

const EDIT_BYTES = 2_097_152;

let installed: InstalledConsole;
let berth: FakeInstallation;
let person: Person;
let page: Page;
let id: string;
before(async () => {
  installed = await startInstalledConsole();
  ({ berth, person, page } = installed);
  ({ id } = await berth.create({ name: 'files', projectId: await berth.makeProject({ name: 'files' }) }));
  await berth.until(id, ({ status }) => status === 'ready');
});
after(() => installed.close());

const run = async (command: string): Promise<string> => (await berth.exec(id, command)).stdout;
const press = (name: string): Promise<void> => page.getByRole('button', { name, exact: true }).click();
const editor = (name: string) => page.getByRole('textbox', { name: `Content of ${name}` });

test('a text file is opened, edited and saved with its line ends; unsaved text blocks leaving', async () => {
  await run(String.raw`mkdir src; printf 'one\r\ntwo\r\n' > src/a.txt`);
  await person.open(`${berth.url}/console/sandboxes/${id}/files`);
  await fileEntry(page, 'src').click();
  await fileEntry(page, 'a.txt').click();
  await editor('a.txt').waitFor();
  await person.look('files', 'editor');
  await replaceText(page, 'Content of a.txt', 'three\nfour');
  await page.getByText('Unsaved changes').waitFor();
  await page.getByRole('navigation', { name: 'Sandbox' }).getByRole('link', { name: 'Overview' }).click();
  await page.getByRole('alertdialog', { name: 'Leave with unsaved changes?' }).waitFor();
  await person.look('files', 'leave');
  await press('Cancel');
  await press('Save');
  await page.getByText('a.txt is saved').waitFor();
  assert.equal(await run('cat src/a.txt'), 'three\r\nfour');
  await page.getByRole('navigation', { name: 'Sandbox' }).getByRole('link', { name: 'Overview' }).click();
  await page.getByRole('heading', { name: 'Details' }).waitFor();
});

test('a file that a command has changed meanwhile is compared, and nothing is lost', async () => {
  await page.goBack();
  await replaceText(page, 'Content of a.txt', 'mine\n');
  await run('echo theirs > src/a.txt');
  await press('Save');
  await page.getByText('The file has changed meanwhile').waitFor();
  assert.equal(await run('cat src/a.txt'), 'theirs\n');
  assert.equal((await page.getByRole('textbox', { name: 'The file now' }).innerText()).trim(), 'theirs');
  assert.equal((await page.getByRole('textbox', { name: 'Your text' }).innerText()).trim(), 'mine');
  await person.look('files', 'comparison');
  await run('echo again > src/a.txt');
  await press('Save my text');
  await page.getByText('again', { exact: true }).waitFor();
  await press('Save my text');
  await page.getByText('Unsaved changes').waitFor({ state: 'detached' });
  // The text keeps the line ends with which it was opened.
  assert.equal(await run('cat src/a.txt'), 'mine\r\n');
  await replaceText(page, 'Content of a.txt', 'kept');
  await run('rm src/a.txt');
  await press('Save');
  await page.getByText('The file was deleted meanwhile').waitFor();
  await press('Save as new file');
  await page.getByText('Unsaved changes').waitFor({ state: 'detached' });
  assert.equal(await run('cat src/a.txt'), 'kept');
});

test('the editor takes 2 MiB; one byte more is read-only, with the command that copies the file', async () => {
  await run(`yes $(seq 20) | head -c ${EDIT_BYTES} > src/fits.txt; (cat src/fits.txt; echo) > src/long.txt`);
  await press('Refresh');
  await fileEntry(page, 'fits.txt').click();
  await editor('fits.txt').waitFor();
  assert.equal(await editor('fits.txt').getAttribute('aria-readonly'), 'false');
  await assertDisabled(page, 'Save', /^There are no changes\.$/);
  await page.keyboard.press('Escape');
  await fileEntry(page, 'long.txt').click();
  await editor('long.txt').waitFor();
  assert.equal(await editor('long.txt').getAttribute('aria-readonly'), 'true');
  await assertDisabled(page, 'Save', new RegExp(`over 2 MiB cannot be edited here\\. Use: berth cp ${id}:FILE \\.$`));
});

test('hostile names and content are shown harmlessly, and can be renamed and deleted', async () => {
  await run(
    `mkdir odd; cd odd; touch '${HOSTILE.replaceAll('/', '')}' "$(printf 'line\\nfeed')"; ln -s / link; mkfifo pipe`,
  );
  await person.open(`${berth.url}/console/sandboxes/${id}/files?path=/code/odd`);
  await fileEntry(page, HARMLESS).waitFor();
  await fileEntry(page, 'line⟨U+000A⟩feed').click();
  await editor('line⟨U+000A⟩feed').waitFor();
  await person.look('files', 'hostile');
  await press('Rename');
  await page.getByLabel('New path').fill('/code/odd/plain');
  await page.getByRole('dialog').getByRole('button', { name: 'Rename' }).click();
  await fileEntry(page, 'plain').waitFor();
  await fileEntry(page, HARMLESS).click();
  await editor(HARMLESS).waitFor();
  assert.equal(await page.getByRole('main').locator('img').count(), 0);
  await press('Delete file');
  await page.getByRole('alertdialog').getByRole('button', { name: 'Delete file' }).click();
  await page.getByRole('alertdialog').waitFor({ state: 'detached' });
  await fileEntry(page, 'pipe').click();
  await page.getByText('Sockets, devices and FIFOs have no content to show.').waitFor();
  assert.equal(await run('ls odd'), 'link\npipe\nplain\n');
  assert.deepEqual(person.complaints, []);
});
