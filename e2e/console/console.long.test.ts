// The console in a real browser, on a real installation with microVMs: the first run by the
// keyboard alone, a terminal under load, and the pictures of the documentation.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { openBrowser, Person } from '../../api/test/pages/browser.ts';
import { PICTURES } from '../../console/test/browser.ts';
import { countReceived, floodOf, pressInMain, screenText, untilDone, untilShown } from '../../console/test/hands.ts';
import { LONG_RUN } from '../../os/test/long-run.ts';
import { awakeSandbox, call, exec, listSandboxes, sleepSandbox } from '../world/client.ts';
import { startInstance, type Instance } from '../world/instance.ts';
import { ownerLink } from '../world/owner.ts';

const CHECKOUT = join(import.meta.dirname, '../..');
/** Where the pictures of the documentation go; absent: they are only looked at. */
const DOCS_PICTURES = process.env['BERTH_DOCS_PICTURES'];
const FLOOD_BYTES = (LONG_RUN ? 100 : 10) * 1_000_000;
const DEADLINE_MS = 120_000;

let instance: Instance;
let browser: Browser;
let person: Person;
let page: Page;
before(async () => {
  instance = await startInstance('console', { BERTH_SCRIPTED_AGENT: '1' });
  browser = await openBrowser(instance.url, instance.url);
  person = await Person.make(browser, PICTURES);
  ({ page } = person);
  page.setDefaultTimeout(DEADLINE_MS);
});
after(async () => {
  await browser.close();
  await instance.end();
});

const terminalOf = (id: string): string => `${instance.url}/console/sandboxes/${id}/terminal`;
const connected = (): Promise<void> => page.getByText('Connected', { exact: true }).waitFor();

async function type(line: string): Promise<void> {
  await page.getByRole('textbox', { name: /^Terminal of / }).focus();
  await page.keyboard.type(line);
  await page.keyboard.press('Enter');
}

test('the owner of a new service creates, enters, serves, sleeps and wakes a microVM by the keyboard', async () => {
  await person.open(await ownerLink(instance));
  await person.fill('Email address', 'ada@example.test');
  await person.fill('Your name', 'Ada Lovelace');
  await person.fill('Password', 'a boat in the harbour');
  await person.fill('Repeat the password', 'a boat in the harbour');
  await person.press('Create the account');
  await page.getByRole('heading', { name: 'Get started' }).waitFor();
  await pressInMain(page, 'button', 'Create sandbox');
  await untilDone(page, 'Create your first sandbox');

  await pressInMain(page, 'link', 'Terminal');
  await connected();
  await untilShown(page, 'the command is typed', /uname -a; id *$/m);
  assert.doesNotMatch(await screenText(page), /uid=/);
  await page.getByRole('textbox', { name: /^Terminal of / }).focus();
  await page.keyboard.press('Enter');
  await untilShown(page, 'the user of the sandbox', /uid=1000\(berth\)/);
  await type('for n in $(seq 300); do echo line $n; done; kept=42');
  await untilShown(page, 'the end of the lines', /^line 300$/m);

  await page.goBack();
  await pressInMain(page, 'button', 'Run it, and make a link');
  const link = page.getByRole('link', { name: 'Open port 3000 in a new tab' });
  await link.waitFor();
  const opened = page.context().waitForEvent('page');
  await link.press('Enter');
  const served = await opened;
  await served.getByRole('heading', { name: /^Directory listing for/ }).waitFor({ timeout: DEADLINE_MS });
  await served.close();
  await untilDone(page, 'Serve something');

  await pressInMain(page, 'button', 'Sleep');
  await page.getByText('Asleep', { exact: true }).waitFor();
  await pressInMain(page, 'button', 'Wake');
  await untilDone(page, 'Let it sleep, and wake it');
  await page.goto(await terminalUrl());
  await connected();
  await type('echo "kept $kept, $(tmux capture-pane -p -S -1000 | grep -c "^line") lines"');
  await untilShown(page, 'the shell and its scroll are the same', /^kept 42, 300 lines$/m);
  assert.deepEqual(person.complaints, []);
});

/** Terminal of the sandbox that the first run made. */
async function terminalUrl(): Promise<string> {
  const [sandbox] = await listSandboxes(instance);
  return terminalOf(sandbox?.id ?? '');
}

test('a long output arrives unchanged, and a shell survives a sleep from elsewhere and a reload', async () => {
  const { id } = await awakeSandbox(instance, { name: 'flood' });
  const received = countReceived(page);
  const { command, arrives } = floodOf(FLOOD_BYTES);
  await page.goto(`${terminalOf(id)}?${new URLSearchParams({ command }).toString()}`);
  await page.getByRole('button', { name: 'Run the command' }).click();
  await page.getByText('The shell has ended with exit code 0.').waitFor();
  assert.deepEqual(received(), arrives);

  await page.goto(terminalOf(id));
  await connected();
  await type('kept=$((6 * 7)); less /etc/passwd');
  await untilShown(page, 'the pager', /^root:/m);
  await page.setViewportSize({ width: 900, height: 700 });
  await page.keyboard.press('q');
  await type('clear; echo "$(tput cols) columns"');
  await untilShown(page, 'the shell knows its size', /^(?:[5-9]\d|1[01]\d) columns$/m);
  await sleepSandbox(instance, id);
  const alert = page.getByRole('alert').filter({ hasText: 'The sandbox is no longer awake' });
  await alert.getByRole('button', { name: 'Wake' }).click();
  await connected();
  await page.reload();
  await connected();
  await type('clear; echo "kept $kept"');
  await untilShown(page, 'the same shell', /^kept 42$/m);
  await page.setViewportSize({ width: 1280, height: 800 });
});

test('the pictures of the documentation show a list, a terminal and a conversation', async () => {
  const sandboxes = new Map<string, string>();
  for (const name of ['review-api', 'docs-preview', 'customer-42', 'nightly-build'])
    sandboxes.set(name, (await awakeSandbox(instance, { name })).id);
  const idOf = (name: string): string => sandboxes.get(name) ?? '';
  for (const name of ['customer-42', 'nightly-build']) await sleepSandbox(instance, idOf(name));
  const id = idOf('review-api');

  await page.goto(`${instance.url}/console/orgs/${instance.orgId}/sandboxes`);
  await page.getByRole('row', { name: /nightly-build.*Asleep/ }).waitFor();
  await picture('list');

  await page.goto(terminalOf(id));
  await connected();
  await type('uname -sr; id; df -h / | tail -1; free -m | head -2');
  await untilShown(page, 'the figures', /^Mem:/m);
  await picture('terminal');

  const steps = [
    'say The test of the parser expects two tokens and gets one: the separator is read as part of the word.',
    'ask-run npm test -- parser',
    'say All 48 tests pass now. The change is in src/parser.ts.',
  ];
  const script = Buffer.from(steps.join('\n')).toString('base64');
  await exec(instance, id, `mkdir -p ~/.scripted-agent; echo ${script} | base64 -d >~/.scripted-agent/script`);
  const { body } = await call(instance, 'POST', `/v1/sandboxes/${id}/agent-sessions`);
  await page.goto(`${instance.url}/console/agent-sessions/${(body as { id: string }).id}`);
  await page.getByLabel(/^Message to /).fill('Why does the parser test fail? Fix it and run the tests again.');
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await page.getByRole('heading', { name: /asks to run a command$/ }).waitFor();
  await picture('conversation');
  await page.getByRole('button', { name: 'Decline', exact: true }).click();
  await page.getByText('All 48 tests pass now. The change is in src/parser.ts.').waitFor();
});

/** Takes the picture in light and dark. The README shows both. */
async function picture(name: string): Promise<void> {
  const readme = readFileSync(join(CHECKOUT, 'README.md'), 'utf8');
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    const path = `docs/pictures/${name}-${colorScheme}.png`;
    const shot = { animations: 'disabled', caret: 'initial' } as const;
    if (DOCS_PICTURES === undefined) {
      assert.ok((await page.screenshot(shot)).length > 10_000, name);
      assert.ok(existsSync(join(CHECKOUT, path)) && readme.includes(path), `the README shows ${path}`);
    } else {
      await mkdir(DOCS_PICTURES, { recursive: true });
      await page.screenshot({ ...shot, path: join(DOCS_PICTURES, `${name}-${colorScheme}.png`) });
    }
  }
}
