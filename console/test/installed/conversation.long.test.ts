// Conversations with the scripted agent in a real browser, on real processes: API, host daemon with
// its fake driver, guest daemons and bridges. Whole stories: ../journeys/conversation.long.test.ts
// and ../journeys/approval.long.test.ts.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { Page } from 'playwright-core';
import type { FakeInstallation } from '../../../api/test/fake-installation.ts';
import type { Person } from '../../../api/test/pages/browser.ts';
import { until } from '../../../os/test/until.ts';
import { assertDisabled, HARMLESS, HOSTILE } from '../browser.ts';
import { inviteMember, startInstalledConsole, type InstalledConsole } from './installation.ts';
import * as sessions from './sessions.ts';
import { loseResponse, type Session } from './sessions.ts';

let installed: InstalledConsole;
let berth: FakeInstallation;
let person: Person;
let page: Page;
let projectId: string;
before(async () => {
  installed = await startInstalledConsole({ BERTH_SCRIPTED_AGENT: '1' });
  ({ berth, person, page } = installed);
  projectId = await berth.makeProject({ name: 'lab' });
});
after(() => installed.close());
beforeEach(() => page.setViewportSize({ width: 1280, height: 800 }));

const makeSandbox = (name: string) => sessions.makeSandbox(berth, projectId, name);
const makeSession = (name: string) => sessions.makeSession(berth, projectId, name);
const effects = (session: Session) => sessions.effects(berth, session);
const write = (text: string): Promise<void> => sessions.write(page, text);
const settled = (): Promise<void> => sessions.settled(page);
const open = (id: string): Promise<void> => person.open(`${berth.url}/console/agent-sessions/${id}`);
const press = (name: string): Promise<void> => page.getByRole('button', { name, exact: true }).click();
const message = () => page.getByLabel('Message to Codex');
const shows = (text: string | RegExp): Promise<void> => page.getByText(text, { exact: true }).first().waitFor();
const sendAs = (id: string, text: string) => berth.call('POST', `/v1/agent-sessions/${id}/messages`, { text });

test('a session starts on the page of its sandbox, takes messages and shows replies of all', async () => {
  const sandboxId = await makeSandbox('talks');
  await person.open(`${berth.url}/console/sandboxes/${sandboxId}/agents`);
  await page.getByText('No agent sessions').waitFor();
  await person.look('talks', 'agents-empty');
  await press('New session');
  await page.waitForURL(/agent-sessions\/ags_/);
  const id = page.url().split('/').at(-1) ?? '';
  await page.getByText('No messages yet').waitFor();
  await write('say first reply');
  await shows('first reply');
  await settled();
  // Another participant.
  await sendAs(id, 'say second reply');
  await shows('say second reply');
  await shows('second reply');
  await shows(/, API key/);
  await page.reload();
  for (const text of ['say first reply', 'first reply', 'say second reply', 'second reply']) await shows(text);
  await person.look('Codex', 'conversation');
  assert.equal(await effects({ id, sandboxId }), 2);
  await page.getByRole('link', { name: 'talks' }).click();
  await page.getByRole('row', { name: /Codex.*Ready for a message.*Completed/ }).waitFor();
  await person.look('talks', 'agents');
  assert.deepEqual(person.complaints, []);
});

/** A pending approval, and the page that shows it. */
async function ask(session: Session, line: string): Promise<void> {
  await open(session.id);
  await write(line);
  await page.getByRole('region', { name: 'Approval' }).waitFor();
}

const decide = (name: string): Promise<void> =>
  page.getByRole('region', { name: 'Approval' }).getByRole('button', { name, exact: true }).click();

test('text in the composer answers no approval, and a canceled approval ends its turn', async () => {
  const session = await makeSession('asks');
  await ask(session, 'ask-run echo accepted >~/proof; echo ran');
  await shows(/^detail of echo accepted/);
  await message().fill('yes, accept');
  await person.look('Codex', 'conversation-approval');
  await assertDisabled(page, 'Send', /A turn is active/);
  await message().press('Control+Enter');
  await decide('Cancel the turn');
  await shows('Canceled');
  await shows(/^Answered by Olive Ogden: canceled the turn/);
  assert.equal((await berth.exec(session.sandboxId, 'cat ~/proof')).exitCode, 1);
});

const forgetLosses = (): void => assert.deepEqual(sessions.otherComplaints(person), []);

test('a message of unknown delivery is checked after a reload, and runs once', async () => {
  const session = await makeSession('lost');
  await open(session.id);
  await page.route('**/messages', loseResponse);
  await write('say once more');
  await page.getByText('It is not known whether the message arrived.').waitFor();
  forgetLosses();
  await person.look('Codex', 'conversation-unsure');
  await page.unroute('**/messages');
  await page.reload();
  assert.equal(await message().inputValue(), 'say once more');
  await press('Check again');
  await settled();
  await shows('once more');

  // Closed while it sends.
  const closed = page.waitForRequest('**/messages');
  await page.route('**/messages', (route) => route.fetch().then(() => undefined));
  await write('say twice');
  await closed;
  await shows('twice');
  await page.unroute('**/messages');
  await page.reload();
  await settled();
  await shows('twice');
  assert.equal(await effects(session), 2);
  forgetLosses();
});

test('a message that was lost before another sign-in is not sent again by itself', async () => {
  const session = await makeSession('signed-in-again');
  await open(session.id);
  let sent = 0;
  // The request is lost before it arrives.
  await page.route('**/messages', (route) => {
    sent += 1;
    return route.abort('connectionreset');
  });
  await write('say hello');
  await page.getByText('Checking whether it arrived…').waitFor();
  await page.route('**/me/sign-ins?*', async (route) => {
    const response = await route.fetch();
    await route.fulfill({ json: JSON.parse((await response.text()).replaceAll('"id":"', '"id":"other-')) as object });
  });
  await page.getByText(/You have signed in again/).waitFor();
  assert.equal(await message().inputValue(), 'say hello');
  assert.equal(sent, 1);
  // The same by hand, after the attempts have ended.
  await press('Send');
  await page.getByText('It is not known whether the message arrived.').waitFor();
  assert.equal(sent, 5);
  await page.unroute('**/me/sign-ins?*');
  await press('Check again');
  await page.getByText(/You have signed in again/).waitFor();
  assert.equal(sent, 5);
  await page.unroute('**/messages');
  await press('Send');
  await settled();
  assert.equal(await effects(session), 1);
  forgetLosses();
});

test('a sleeping sandbox keeps what was read, and no look wakes it', async () => {
  const session = await makeSession('sleepy');
  await open(session.id);
  await write('say before the sleep');
  await shows('before the sleep');
  await settled();
  await message().fill('a draft');
  await berth.call('POST', `/v1/sandboxes/${session.sandboxId}/sleep`);
  await page.getByText(/^The sandbox is asleep: wake it to read on\./).waitFor();
  await shows('before the sleep');
  assert.equal(await message().inputValue(), 'a draft');
  await person.look('Codex', 'conversation-asleep');
  await assertDisabled(page, 'Send', /takes no messages now/);
  const { lastActiveAt } = await berth.get(session.sandboxId);
  await page.reload();
  await page.getByText(/^The sandbox is asleep/).waitFor();
  await page.getByRole('link', { name: 'Agents', exact: true }).click();
  await page
    .getByRole('row', { name: /Codex.*Asleep/ })
    .first()
    .waitFor();
  await open(session.id);
  await page.getByText(/^The sandbox is asleep/).waitFor();
  const { status, lastActiveAt: after } = await berth.get(session.sandboxId);
  assert.deepEqual([status, after], ['stopped', lastActiveAt]);
  await press('Wake');
  await shows('before the sleep');
  await page.getByText('Ready for a message', { exact: true }).waitFor();
});

test('hostile text is shown as text, its controls as their codes', async () => {
  const session = await makeSession('hostile');
  await open(session.id);
  await write(`say ${HOSTILE}\nsay [go](javascript:alert(1)) https://evil.example.test/`);
  await shows(`say ${HARMLESS}\nsay [go](javascript:alert(1)) https://evil.example.test/`);
  await shows(HARMLESS);
  const region = page.getByRole('region', { name: 'Conversation' });
  assert.equal(await region.locator('img, a').count(), 0);
  await settled();
  await write(`ask-run echo ${HOSTILE}`);
  // The service has replaced it already.
  const shown = HOSTILE.replace('\u202E', String.raw`\u{202e}`);
  await page.getByText(`detail of echo ${shown}`, { exact: true }).waitFor();
  await decide('Decline');
  await settled();
  assert.deepEqual(person.complaints, []);
});

const REGION = "document.querySelector('section[aria-label=Conversation]')";

test('new replies do not move a page that is not at its end, and are counted', async () => {
  const session = await makeSession('long-talk');
  await open(session.id);
  await write('stream 60 0');
  await shows('reply 60');
  const top = (): Promise<number> => page.evaluate<number>(`${REGION}.scrollTop`);
  await until('the end is in view', async () => ((await top()) > 500 ? true : null));
  await page.evaluate(`${REGION}.scrollTo({ top: 0 })`);
  await sendAs(session.id, 'say late');
  await press('2 new');
  await until('the end is in view again', async () => ((await top()) > 500 ? true : null));
  await page.getByRole('button', { name: /new$/ }).waitFor({ state: 'detached' });
});

test('a second person answers in the inbox, and both pages show by whom', async () => {
  const session = await makeSession('shared');
  await open(session.id);
  await write('say from Olive\nask to go on');
  await shows('from Olive');
  const second = await inviteMember(installed, 'bert@example.test', 'Bert Brand');
  await second.person.open(`${berth.url}/console/agent-sessions/${session.id}`);
  for (const text of ['Olive Ogden', 'from Olive']) await second.page.getByText(text).first().waitFor();
  await second.page.goto(`${berth.url}/console/orgs/${berth.orgId}`);
  await second.page.getByRole('region', { name: 'Waiting for you' }).getByRole('row', { name: /Codex/ }).waitFor();
  await second.page.getByRole('link', { name: /^Inbox \d+ waiting for you/ }).click();
  await second.page.getByRole('heading', { name: 'Inbox' }).waitFor();
  assert.match(await second.page.title(), /^\(\d+\) Inbox/);
  await second.person.look('Inbox', 'inbox');
  await second.page.getByRole('button', { name: `Review Codex, ${session.id}` }).click();
  await second.page.getByText('detail of to go on').waitFor();
  await second.person.look('Inbox', 'inbox-review');
  // Enter on what has the focus closes the review, also when the approval is known already.
  await second.page.keyboard.press('Escape');
  await second.page.getByRole('button', { name: `Review Codex, ${session.id}` }).click();
  await second.page.getByText('detail of to go on').waitFor();
  assert.equal(await second.page.evaluate('document.activeElement.innerText'), 'Close');
  await second.page.getByRole('button', { name: 'Decline', exact: true }).click();
  await second.page.getByText('Answered by Bert Brand: declined.').waitFor();
  await shows('Answered by Bert Brand: declined.');
  await settled();
  await second.page.getByRole('banner').getByRole('link', { name: 'Inbox', exact: true }).waitFor();
  await second.page.keyboard.press('Escape');
  await second.page.getByRole('link', { name: 'Answers so far' }).click();
  await second.page.getByRole('heading', { name: 'Activity' }).waitFor();
  const answered = second.page.getByRole('listitem').filter({ hasText: 'Approval request answered' }).first();
  await answered.waitFor();
  assert.match(await answered.innerText(), /Bert Brand/);
  assert.deepEqual(second.person.complaints, []);
});
