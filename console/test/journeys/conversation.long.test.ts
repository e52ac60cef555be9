// Conversation with the scripted agent through a crash, a lost response and an interrupt, on
// real processes: API, host daemon with its fake driver, guest daemons and bridges.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type { Page } from 'playwright-core';
import type { FakeInstallation } from '../../../api/test/fake-installation.ts';
import type { Person } from '../../../api/test/pages/browser.ts';
import { until } from '../../../os/test/until.ts';
import { assertDisabled } from '../browser.ts';
import { inviteMember, startInstalledConsole, type InstalledConsole } from '../installed/installation.ts';
import {
  effects,
  loseResponse,
  makeSession,
  otherComplaints,
  settled,
  write,
  type Session,
} from '../installed/sessions.ts';

const DEADLINE_MS = 60_000;
/** Prompts and replies, in their order. */
const TRANSCRIPT = [
  ...['say kept\nhang', 'kept'],
  ...['say after the recover', 'after the recover'],
  ...['say only once', 'only once'],
  ...['say started\nhang', 'started'],
  ...['say after the interrupt', 'after the interrupt'],
];
const TURNS = 5;

let installed: InstalledConsole;
let berth: FakeInstallation;
let person: Person;
let page: Page;
let session: Session;
let address: string;
before(async () => {
  installed = await startInstalledConsole({ BERTH_SCRIPTED_AGENT: '1' });
  ({ berth, person, page } = installed);
  session = await makeSession(berth, await berth.makeProject({ name: 'lab' }), 'talks');
  address = `${berth.url}/console/agent-sessions/${session.id}`;
  await person.open(address);
});
after(() => installed.close());

const press = (name: string): Promise<void> => page.getByRole('button', { name, exact: true }).click();
const shows = (text: string | RegExp): Promise<void> => page.getByText(text, { exact: true }).first().waitFor();

/** Resolves when the page shows these prompts and replies, each once, and no others. */
async function untilShown(shown: Page, expected: readonly string[]): Promise<void> {
  const words = shown.getByRole('region', { name: 'Conversation' }).locator('article > div');
  let found: string[] = [];
  await until(
    () => `the conversation is ${JSON.stringify(found)}`,
    async () => {
      found = await words.allTextContents();
      return isDeepStrictEqual(found, expected) ? true : null;
    },
    DEADLINE_MS,
  );
}

test('a killed bridge fails its turn, and the conversation goes on after a recover', async () => {
  await write(page, 'say kept\nhang');
  await shows('kept');
  const { stdout } = await berth.exec(session.sandboxId, `cat /state/agent-sessions/${session.id}/owner.json`);
  const { bridge } = JSON.parse(stdout) as { bridge: { pid: number } };
  await berth.exec(session.sandboxId, `kill -9 ${bridge.pid}`);
  await page.getByText(/^The session has stopped/).waitFor();
  await page.getByText(/^Failed\..* Nobody knows how far it got; nothing is repeated/).waitFor();
  await person.look('Codex', 'conversation-stopped');
  await press('Recover');
  await page.getByText('Ready for a message', { exact: true }).waitFor();
  await write(page, 'say after the recover');
  await shows('after the recover');
  await settled(page);
  await untilShown(page, TRANSCRIPT.slice(0, 4));
});

test('a message whose response is lost twice runs once', async () => {
  let sent = 0;
  await page.route('**/messages', (route) => ((sent += 1) <= 2 ? loseResponse(route) : route.continue()));
  await write(page, 'say only once');
  await page.getByText('Checking whether it arrived…').waitFor();
  await settled(page);
  await page.unroute('**/messages');
  assert.equal(sent, 3);
  await untilShown(page, TRANSCRIPT.slice(0, 6));
  assert.equal(await effects(berth, session), 3);
  assert.deepEqual(otherComplaints(person), []);
});

test('a busy agent keeps the draft over a reload, and gets it after an interrupt', async () => {
  await write(page, 'say started\nhang');
  await page.getByText('At work', { exact: true }).waitFor();
  await shows('started');
  const message = page.getByLabel('Message to Codex');
  await message.fill('say after the interrupt');
  await assertDisabled(page, 'Send', /A turn is active/);
  await page.reload();
  await shows('started');
  assert.equal(await message.inputValue(), 'say after the interrupt');
  await press('Interrupt and send');
  await shows('after the interrupt');
  await shows('Canceled');
  await settled(page);
  await untilShown(page, TRANSCRIPT);
});

test('prompts, replies and ends of turns are complete after a reload and for a second person', async () => {
  await page.reload();
  const second = await inviteMember(installed, 'bert@example.test', 'Bert Brand');
  await second.person.open(address);
  for (const shown of [page, second.page]) {
    await untilShown(shown, TRANSCRIPT);
    assert.equal(await shown.getByText(/^Olive Ogden · /).count(), TURNS);
    for (const end of [/^Canceled$/, /^Failed\. /])
      assert.equal(await shown.locator('li > p').getByText(end).count(), 1);
  }
  assert.equal(await effects(berth, session), TURNS);
  assert.deepEqual([person.complaints, second.person.complaints], [[], []]);
});
