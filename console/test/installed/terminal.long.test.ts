// The terminal in a real browser, on real processes: shells of the fake driver's guests.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { Page } from 'playwright-core';
import type { FakeInstallation } from '../../../api/test/fake-installation.ts';
import type { Person } from '../../../api/test/pages/browser.ts';
import { until } from '../../../os/test/until.ts';
import { assertDisabled } from '../browser.ts';
import { screenText, untilShown } from '../hands.ts';
import { startInstalledConsole, type InstalledConsole } from './installation.ts';

const DEADLINE_MS = 60_000;

let installed: InstalledConsole;
let berth: FakeInstallation;
let person: Person;
let page: Page;
let projectId: string;
before(async () => {
  installed = await startInstalledConsole();
  ({ berth, person, page } = installed);
  projectId = await berth.makeProject({ name: 'lab' });
});
after(() => installed.close());
beforeEach(() => page.setViewportSize({ width: 1280, height: 800 }));

async function make(name: string, project = projectId): Promise<string> {
  const { id } = await berth.create({ projectId: project, name });
  await berth.until(id, ({ status }) => status === 'ready');
  return id;
}

const press = (name: string): Promise<void> => page.getByRole('button', { name, exact: true }).click();
const input = () => page.getByRole('textbox', { name: /^Terminal of / });

/** Opens a page of the sandbox's terminal, and waits for the prompt of its shell. */
async function open(id: string, search = ''): Promise<void> {
  await person.open(`${berth.url}/console/sandboxes/${id}/terminal${search}`);
  await attached();
}

async function attached(): Promise<void> {
  await page.getByText('Connected', { exact: true }).waitFor();
  await shows(/\$ *$/m);
  await input().focus();
}

const shows = (pattern: RegExp): Promise<void> => untilShown(page, 'the output', pattern);

async function type(line: string): Promise<void> {
  await page.keyboard.type(line);
  await page.keyboard.press('Enter');
}

test('a look at the terminal of a sleeping sandbox does not wake it; its button does', async () => {
  const id = await make('asleep', await berth.makeProject({ name: 'wakes', wakeOnUse: true }));
  await berth.call('POST', `/v1/sandboxes/${id}/sleep`);
  const { lastActiveAt } = await berth.get(id);
  await person.open(`${berth.url}/console/sandboxes/${id}/terminal`);
  await page.getByRole('heading', { name: 'The sandbox is asleep' }).waitFor();
  await person.look('asleep', 'terminal-asleep');
  assert.deepEqual([(await berth.get(id)).status, (await berth.get(id)).lastActiveAt], ['stopped', lastActiveAt]);
  await assertDisabled(page, 'Terminal', /Not possible while the sandbox is asleep/);
  await page.locator('main section').getByRole('button', { name: 'Wake', exact: true }).click();
  await attached();
});

/** Opens a link with a command, and runs it. */
async function run(id: string, command: string): Promise<void> {
  await person.open(`${berth.url}/console/sandboxes/${id}/terminal?${new URLSearchParams({ command }).toString()}`);
  await press('Run the command');
}

test('endless output is held back on a slow computer, and a key still interrupts it', async () => {
  const id = await make('endless');
  const orders: unknown[] = [];
  page.once('websocket', (socket) =>
    socket.on('framesent', ({ payload }) => {
      if (typeof payload === 'string') orders.push(JSON.parse(payload));
    }),
  );
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Emulation.setCPUThrottlingRate', { rate: 4 });
  await run(id, 'yes "$(seq -s . 500)"');
  await until(
    () => `the output is held and comes again: ${JSON.stringify(orders)}`,
    () => Promise.resolve(orders.length >= 4 ? true : null),
  );
  assert.deepEqual(orders.slice(0, 4), [{ pause: true }, { pause: false }, { pause: true }, { pause: false }]);
  await devtools.send('Emulation.setCPUThrottlingRate', { rate: 1 });
  await input().focus();
  await page.keyboard.press('Control+C');
  await page.getByText('The program has ended with exit code 130.').waitFor();
  await devtools.detach();
});

test('a command of a link is shown in full, and runs only after consent', async () => {
  const id = await make('linked');
  const command = `touch /code/ran-\u202E${'x'.repeat(200)}; echo it ran`;
  await person.open(`${berth.url}/console/sandboxes/${id}/terminal?${new URLSearchParams({ command }).toString()}`);
  await page.getByRole('heading', { name: 'Run this command?' }).waitFor();
  assert.equal(await page.locator('pre').innerText(), command.replace('\u202E', '⟨U+202E⟩'));
  await person.look('linked', 'terminal-consent');
  await press('Open a shell instead');
  await attached();
  await type('ls /code | wc -l');
  await shows(/^0$/m);
  await page.reload();
  await press('Run the command');
  await page.getByText('The program has ended with exit code 0.').waitFor();
  await shows(/^it ran$/m);
  // A new shell, not the command again.
  await press('Start again');
  await attached();
  await type('ls /code | wc -l');
  await shows(/^1$/m);
  await page.reload();
  await attached();
});

test('an ended shell says so and gives its exit code; a button starts a new one', async () => {
  const id = await make('ends');
  await open(id, '?session=2');
  await type('exit');
  const alert = page.getByRole('alert').filter({ hasText: 'The program has ended' });
  await alert.waitFor();
  await person.look('ends', 'terminal-ended');
  await alert.getByRole('button', { name: 'Start again' }).click();
  await attached();
  await page.getByLabel('Session').selectOption('3');
  await page.waitForURL(/session=3/);
  await attached();
  await type('tmux display -p "#S"');
  await shows(/^console-3$/m);
});

test('hostile output opens nothing, copies nothing and renames only the label', async () => {
  const id = await make('hostile');
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: berth.url });
  await page.evaluate(`navigator.clipboard.writeText('mine')`);
  const opened: string[] = [];
  page.context().on('page', (other) => opened.push(other.url()));
  const link = (address: string, words: string): string => `\\033]8;;${address}\\033\\\\${words}\\033]8;;\\033\\\\`;
  const title = 'x<img src=x onerror=alert(1)>\u202Egnp';
  const sequences = [
    `\\033]0;${title}\\007`,
    // Clipboard; size, position and title of the window.
    '\\033]52;c;c3RvbGVu\\007\\033[8;5;5t\\033[3t\\033[21t\\r\\n',
    `${link('https://evil.example.test/a', 'https://bank.example.test')}\\r\\n`,
    `${link('javascript:alert(1)', 'script')}\\r\\n<b>bold</b>\\r\\n`,
  ];
  await run(id, `printf '${sequences.join('')}'; cat`);
  await shows(/https:\/\/bank\.example\.test\n.*script\n.*<b>bold<\/b>/);
  await page.getByText('Title: x<img src=x onerror=alert(1)>⟨U+202E⟩gnp').waitFor();
  assert.equal(await page.title(), 'hostile · Terminal · Berth');
  await page.getByText('script', { exact: true }).click({ force: true });
  assert.equal(await page.getByRole('region', { name: 'Link in the output' }).count(), 0);
  await page.getByText('https://bank.example.test', { exact: true }).click({ force: true });
  const panel = page.getByRole('region', { name: 'Link in the output' });
  await panel.getByText('https://evil.example.test/a', { exact: true }).waitFor();
  assert.equal(await panel.getByRole('link').getAttribute('href'), 'https://evil.example.test/a');
  await person.look('hostile', 'terminal-link');
  // Replies of the terminal to queries of size and title would be typed into the program.
  assert.doesNotMatch(await screenText(page), /;\d+t|stolen|evil/);
  assert.equal(await page.evaluate('navigator.clipboard.readText()'), 'mine');
  assert.deepEqual(opened, []);
});

test('the keyboard leaves the terminal, and the label says how', async () => {
  const id = await make('leaves');
  await open(id);
  const label = 'Terminal of leaves. Control-Shift-Escape leaves it, on Windows Control-Shift-F6.';
  assert.equal(await page.getByRole('textbox', { name: label }).count(), 1);
  await type('cat > /dev/null');
  for (const keys of ['Control+Shift+Escape', 'Control+Shift+F6']) {
    await page.keyboard.press('Tab');
    await input().and(page.locator(':focus')).waitFor();
    await page.keyboard.press(keys);
    await page.locator('p:focus').waitFor();
    await page.keyboard.press('Shift+Tab');
    await input().and(page.locator(':focus')).waitFor();
  }
  await page.getByLabel('Screen reader mode').check();
  await input().focus();
  await page.keyboard.press('Control+C');
  await type('echo $((5 * 5)) read aloud');
  await page.locator('.xterm-accessibility').getByText('25 read aloud', { exact: true }).waitFor();
  await person.look('leaves', 'terminal-read-aloud');
});

test('the bar has the keys that touch keyboards lack, and the size follows the screen', async () => {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: berth.url });
  await page.setViewportSize({ width: 390, height: 844 });
  const id = await make('touch');
  await open(id);
  await type('sleep 1000');
  await press('Ctrl');
  await page.keyboard.type('c');
  await type('echo $((40 + 1))copied');
  await shows(/^41copied$/m);
  await press('Up');
  await page.keyboard.press('Enter');
  await shows(/^41copied\n(.*\n)*41copied$/m);
  await page
    .locator('.xterm-rows')
    .getByText('41copied', { exact: true })
    .last()
    .dblclick({ force: true, modifiers: ['Shift'] });
  await press('Copy');
  assert.equal(await page.evaluate('navigator.clipboard.readText()'), '41copied');
  await page.evaluate(`navigator.clipboard.writeText('echo $((9 * 9))pasted')`);
  await press('Paste');
  await press('|');
  await type('cat');
  await shows(/^81pasted$/m);
  await type('clear; echo "columns $(tmux display -p "#{client_width}")"');
  await shows(/^columns [34]\d$/m);
  await page.setViewportSize({ width: 1280, height: 800 });
  await type('clear; echo "columns $(tmux display -p "#{client_width}")"');
  await shows(/^columns 1[12]\d$/m);
});

test('a terminal in the background is released after 15 minutes, and a key reattaches it', async () => {
  const id = await make('background');
  await page.clock.install();
  await open(id);
  await type('kept=$((8 * 8)); echo "= $kept"');
  await shows(/^= 64$/m);
  await page.evaluate(`Object.defineProperty(document, 'hidden', { value: true, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'))`);
  await page.clock.fastForward('14:00');
  assert.equal(await page.getByText('Connected', { exact: true }).count(), 1);
  await page.clock.fastForward('01:30');
  await page.getByText(/^Released after 15 minutes in the background/).waitFor();
  await page.evaluate(`delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))`);
  await person.look('background', 'terminal-detached');
  await input().focus();
  await page.keyboard.press('Enter');
  await attached();
  await type('echo "still $kept"');
  await shows(/^still 64$/m);
});

test('a lost connection is reattached to the same shell by itself; a shell woken by others waits', async () => {
  const id = await make('restarts');
  let drop = (): Promise<void> => Promise.resolve();
  let opened = 0;
  await page.routeWebSocket(/\/terminal\?/, (socket) => {
    socket.connectToServer();
    opened += 1;
    drop = () => socket.close({ code: 1001, reason: 'shutting_down' });
  });
  await open(id);
  await type('kept=$((3 * 3))');
  await drop();
  await until(
    () => `a second connection: ${opened}`,
    () => Promise.resolve(opened === 2 ? true : null),
    DEADLINE_MS,
  );
  await attached();
  await type('echo "kept $kept"');
  await shows(/^kept 9$/m);
  assert.equal(await page.getByRole('alert').count(), 0);

  await berth.call('POST', `/v1/sandboxes/${id}/sleep`);
  await page.getByText('The sandbox is no longer awake').waitFor();
  await berth.call('POST', `/v1/sandboxes/${id}/wake`);
  await press('Connect');
  await attached();
  await type('echo "still $kept"');
  await shows(/^still 9$/m);
});

for (const [what, program] of [
  ['queries, each with a reply', `stty raw -echo; yes "$(printf '\\033[c\\033[6n%.0s' $(seq 500))"`],
  ['marks on one character', `printf e; yes "$(printf '\\314\\201')" | tr -d '\\n'`],
  ['invalid sequences', 'yes "$(printf \'\\033[\\377\\033]\\302%.0s\' $(seq 500))"'],
  ['titles', `yes "$(printf '\\033]0;%s\\007' $(seq 500))"`],
] as const) {
  test(`5 MB of ${what} leave the page usable`, async () => {
    const id = await make('floods');
    await run(id, `${program} | head -c 5000000`);
    await page.getByText('The program has ended with exit code 0.').waitFor();
    await press('Start again');
    await attached();
    assert.deepEqual(person.complaints, []);
  });
}
