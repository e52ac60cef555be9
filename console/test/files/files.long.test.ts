// Files of a sandbox in a real browser, on a real guest daemon with the fake driver.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import type { FakeInstallation } from '../../../api/test/fake-installation.ts';
import type { Person } from '../../../api/test/pages/browser.ts';
import { fileEntry, replaceText } from '../hands.ts';
import { startInstalledConsole, type InstalledConsole } from '../installed/installation.ts';

const MIB = 1_048_576;

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

const open = async (path?: string): Promise<void> => {
  const query = path === undefined ? '' : `?path=${encodeURIComponent(path)}`;
  await person.open(`${berth.url}/console/sandboxes/${id}/files${query}`);
};
const run = async (command: string): Promise<string> => (await berth.exec(id, command)).stdout;
const press = (name: string): Promise<void> => page.getByRole('button', { name, exact: true }).click();
const entry = (name: string): Locator => fileEntry(page, name);

async function assertHex(name: string, pattern: RegExp): Promise<void> {
  await page.getByRole('heading', { name: `/code/${name}` }).waitFor();
  assert.match(await page.getByRole('textbox', { name: 'First bytes of the file' }).inputValue(), pattern);
}

test('bytes are shown as hex, an image only after a press, and a long file by its head', async () => {
  await run(
    'printf "\\211PNG\\r\\n\\032\\n\\0bad" > broken.png; printf "a\\0b" > some.bin; ' +
      `head -c ${20 * MIB} /dev/zero > long.bin`,
  );
  await open('/code/some.bin');
  await assertHex('some.bin', /^000000 {2}61 00 62/);
  await entry('broken.png').click();
  await press('Show image');
  await page.getByText('The browser cannot draw this image.').waitFor();
  await entry('long.bin').click();
  await assertHex('long.bin', /\n0001f0 {2}/);
  await person.look('files', 'hex');
});

test('files are uploaded whole, never replaced without a question, and downloaded', async () => {
  await open();
  await entry('code').waitFor();
  const upload = (text: string): Promise<void> =>
    page
      .getByLabel('Files to upload')
      .setInputFiles({ name: 'up.bin', mimeType: 'image/png', buffer: Buffer.alloc(5 * MIB, text) });
  await upload('a');
  await page.getByText('up.bin is uploaded').waitFor();
  assert.equal(await run('stat -c %s up.bin; head -c 3 up.bin'), `${5 * MIB}\naaa`);
  await upload('b');
  await page.getByRole('alertdialog', { name: 'Replace up.bin?' }).waitFor();
  await press('Cancel');
  await page.getByRole('alertdialog').waitFor({ state: 'detached' });
  assert.equal(await run('head -c 3 up.bin'), 'aaa');
  await upload('b');
  await press('Replace file');
  await page.getByRole('alertdialog').waitFor({ state: 'detached' });
  await entry('up.bin').click();
  const [download] = await Promise.all([page.waitForEvent('download'), press('Download')]);
  assert.equal(download.suggestedFilename(), 'up.bin');
  assert.equal(await run('head -c 3 up.bin'), 'bbb');
});

test('folders and files are created, and an existing name is refused in the form', async () => {
  await open();
  for (const [button, name] of [
    ['New folder', 'fresh'],
    ['New file', 'note.md'],
  ] as const) {
    await press(button);
    await page.getByLabel('Name').fill(name);
    await press('Create');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  }
  assert.equal(await run('ls fresh'), 'note.md\n');
  await press('New file');
  await page.getByLabel('Name').fill('note.md');
  await press('Create');
  await page.getByRole('dialog').getByRole('alert').waitFor();
  await press('Cancel');
});

test('an asleep sandbox is not asked for its files, keeps unsaved text, and is woken by a press', async () => {
  await run('echo text > kept.txt');
  await open('/code/kept.txt');
  await replaceText(page, 'Content of kept.txt', 'unsaved');
  await press('Sleep');
  await page.getByText('Files need an awake sandbox').waitFor();
  await page.getByText('Asleep', { exact: true }).waitFor();
  assert.equal(await page.getByRole('textbox', { name: 'Content of kept.txt' }).innerText(), 'unsaved');
  const calls: string[] = [];
  page.on('request', (request) => void calls.push(request.url()));
  page.once('dialog', (dialog) => void dialog.accept());
  await open('/code/kept.txt');
  await page.getByText('Files need an awake sandbox').waitFor();
  await person.look('files', 'asleep');
  assert.deepEqual(
    calls.filter((url) => /\/files?\?/.test(url) && url.includes('/v1/')),
    [],
  );
  assert.equal((await berth.get(id)).status, 'stopped');
  await page.getByRole('main').getByRole('button', { name: 'Wake' }).last().click();
  await page.getByRole('textbox', { name: 'Content of kept.txt' }).waitFor();
});
