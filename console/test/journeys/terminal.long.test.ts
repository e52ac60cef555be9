// A terminal by the keyboard alone: a long output, a full-screen program, a resize, a sleep from
// another tab, a reload, and a sign-in that another browser ends.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import type { FakeInstallation } from '../../../api/test/fake-installation.ts';
import { Person } from '../../../api/test/pages/browser.ts';
import { PASSWORD } from '../../../api/test/pages/site.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { LONG_RUN } from '../../../os/test/long-run.ts';
import { PICTURES, SIZES } from '../browser.ts';
import { countReceived, floodOf, pressInMain, screenText, tabTo, untilShown } from '../hands.ts';
import { startInstalledConsole, type InstalledConsole } from '../installed/installation.ts';

const FLOOD_BYTES = (LONG_RUN ? 100 : 10) * 1_000_000;
const EMAIL = 'olive@example.test';
/** Lines of a file that is longer than any screen. */
const LINES = 500;

let installed: InstalledConsole;
let berth: FakeInstallation;
let person: Person;
let page: Page;
let address: string;
before(async () => {
  installed = await startInstalledConsole();
  ({ berth, person, page } = installed);
  const { id } = await berth.create({ name: 'loaded', projectId: await berth.makeProject({ name: 'lab' }) });
  await berth.until(id, ({ status }) => status === 'ready');
  address = `${berth.url}/console/sandboxes/${id}`;
});
after(() => installed.close());

const alert = (text: string) => page.getByRole('alert').filter({ hasText: text });
const shows = (what: string, pattern: RegExp): Promise<void> => untilShown(page, what, pattern);

/** The page moves the focus to the terminal that opens. */
async function connected(): Promise<void> {
  await page.getByText('Connected', { exact: true }).waitFor();
  await page
    .getByRole('textbox', { name: /^Terminal of / })
    .and(page.locator(':focus'))
    .waitFor();
}

async function atPrompt(): Promise<void> {
  await connected();
  await shows('the prompt of the shell', /\$ *$/m);
}

async function type(line: string): Promise<void> {
  await page.keyboard.type(line);
  await page.keyboard.press('Enter');
}

/** Leaves the terminal and presses the button in the alert above it. */
async function pressInAlert(text: string, name: string): Promise<void> {
  await alert(text).waitFor();
  await page.keyboard.press('Control+Shift+Escape');
  await tabTo(page, alert(text).getByRole('button', { name, exact: true }));
  await page.keyboard.press('Enter');
}

test('a long output of a linked command arrives unchanged', async () => {
  const received = countReceived(page);
  const { command, arrives } = floodOf(FLOOD_BYTES);
  await person.open(`${address}/terminal?${new URLSearchParams({ command }).toString()}`);
  await pressInMain(page, 'button', 'Run the command');
  await page.getByText('The program has ended with exit code 0.').waitFor();
  assert.deepEqual(received(), arrives);
  assert.match(await screenText(page), /x+end\s*$/);
  await pressInAlert('The program has ended', 'Start again');
  await atPrompt();
});

/** Lines of the file that are on the screen. */
const linesShown = async (): Promise<number> => (await screenText(page)).match(/^line \d+$/gm)?.length ?? 0;

test('an editor fills the terminal and follows the size of the window', async () => {
  await type(`kept=$((6 * 7)); seq -f 'line %g' ${LINES} > long`);
  // Each of them goes to the end with G and leaves with :q.
  await type('"$(command -v vim || command -v vi || command -v less)" long');
  await shows('the start of the file', /^line 1\nline 2$/m);
  await page.keyboard.press('G');
  await shows('the end of the file', new RegExp(`^line ${LINES}$`, 'm'));
  const shown = await linesShown();
  await page.setViewportSize({ width: 700, height: 500 });
  await untilTrue('a small window shows fewer lines', async () => (await linesShown()) < shown);
  await page.setViewportSize({ width: 1280, height: 800 });
  await untilTrue('a large window shows as many as before', async () => (await linesShown()) === shown);
});

test('a sleep from another tab is named, and its wake shows the same editor and shell', async () => {
  const tab = await page.context().newPage();
  await tab.goto(address);
  await pressInMain(tab, 'button', 'Sleep');
  await tab.getByText('Asleep', { exact: true }).waitFor();
  await tab.close();
  await alert('The sandbox is no longer awake. Its shell continues after a wake.').waitFor();
  // The output stays.
  await shows('the end of the file', new RegExp(`^line ${LINES}$`, 'm'));
  await pressInAlert('The sandbox is no longer awake', 'Wake');
  await connected();
  await shows('the end of the file after the wake', new RegExp(`^line ${LINES}$`, 'm'));
  await type(':q');
  await atPrompt();
  await type('clear; echo "after a wake $kept"');
  await shows('the variable', /^after a wake 42$/m);
  await person.look('loaded', 'terminal');
});

test('a reload attaches to the same shell', async () => {
  await page.reload();
  await atPrompt();
  await type('clear; echo "after a reload $kept"');
  await shows('the variable', /^after a reload 42$/m);
});

async function signIn(at: Page, title: string): Promise<void> {
  for (const [label, text] of [
    ['Email address', EMAIL],
    ['Password', PASSWORD],
  ] as const) {
    await tabTo(at, at.getByLabel(label, { exact: true }));
    await at.keyboard.type(text);
  }
  await at.keyboard.press('Enter');
  await at.getByRole('heading', { name: title, level: 1 }).waitFor();
}

test('a sign-in that another browser ends covers the terminal, which reconnects after a new one', async () => {
  const other = await Person.make(installed.browser, PICTURES, SIZES);
  await other.open(`${berth.url}/sign-ins`);
  await signIn(other.page, 'Your sign-ins');
  await other.press('End all others');
  const cover = page.getByRole('alertdialog', { name: 'You are signed out' });
  await cover.waitFor();
  await alert('Your sign-in has ended, and the terminal with it.').waitFor();
  await shows('the output stays', /^after a reload 42$/m);

  const opened = page.context().waitForEvent('page');
  await tabTo(page, cover.getByRole('link', { name: 'Sign in again' }));
  await page.keyboard.press('Enter');
  const tab = await opened;
  await signIn(tab, 'Overview');
  await tab.close();
  await page.evaluate('dispatchEvent(new Event("focus"))');
  await cover.waitFor({ state: 'detached' });
  await pressInAlert('Your sign-in has ended', 'Reconnect');
  await atPrompt();
  await type('clear; echo "after a sign-in $kept"');
  await shows('the variable', /^after a sign-in 42$/m);
  assert.deepEqual([...person.complaints, ...other.complaints], []);
});
