// Approvals of an agent on a telephone, on real processes: API, host daemon with its fake driver,
// guest daemons and bridges. The person reads the conversation of another agent meanwhile.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import type { FakeInstallation } from '../../../api/test/fake-installation.ts';
import type { Person } from '../../../api/test/pages/browser.ts';
import { assertDisabled } from '../browser.ts';
import { startInstalledConsole, type InstalledConsole } from '../installed/installation.ts';
import { makeSession, type Session } from '../installed/sessions.ts';

const TELEPHONE = { width: 390, height: 844 };
const REMOVAL = `rm -rf ~/proof ~/other && ${'echo "one more line" >>~/proof && '.repeat(20)}echo removed`;
/** Longer than the part of a command that a session shows. */
const LONG = `echo accepted >~/proof; true ${'x'.repeat(5_000)} THE-END`;

/** Presses each button of an approval at once when its text appears or changes. */
const HASTY = `globalThis.hasty = [];
let last = null;
new MutationObserver(() => {
  const card = document.querySelector('section[aria-label=Approval]');
  const text = card?.querySelector('pre')?.textContent ?? null;
  if (text === last) return;
  last = text;
  if (text === null) return;
  globalThis.hasty.push(text);
  for (const button of card.querySelectorAll('li button')) button.click();
}).observe(document, { childList: true, subtree: true, characterData: true })`;

let installed: InstalledConsole;
let berth: FakeInstallation;
let person: Person;
let page: Page;
let asking: Session;
let other: Session;
before(async () => {
  installed = await startInstalledConsole({ BERTH_SCRIPTED_AGENT: '1' });
  ({ berth, person, page } = installed);
  const projectId = await berth.makeProject({ name: 'lab' });
  asking = await makeSession(berth, projectId, 'asks');
  other = await makeSession(berth, projectId, 'open');
  await page.setViewportSize(TELEPHONE);
  await page.addInitScript(HASTY);
});
after(() => installed.close());

const card = (): Locator => page.getByRole('region', { name: 'Approval' });
const shows = (text: string | RegExp): Promise<void> => page.getByText(text, { exact: true }).first().waitFor();
const decide = (name: string): Promise<void> => card().getByRole('button', { name, exact: true }).click();
const open = ({ id }: Session): Promise<void> => person.open(`${berth.url}/console/agent-sessions/${id}`);
const proof = async () => (await berth.exec(asking.sandboxId, 'cat ~/proof')).stdout;

/** The agent asks; the bell of another conversation leads to its approval. */
async function reviewAfter(text: string): Promise<void> {
  await open(other);
  await shows('No messages yet');
  await page.getByLabel('Inbox', { exact: true }).waitFor();
  await berth.call('POST', `/v1/agent-sessions/${asking.id}/messages`, { text });
  await page.getByRole('link', { name: 'Inbox 1 waiting for you' }).click();
  await page.getByRole('heading', { name: 'Inbox' }).waitFor();
  assert.match(await page.title(), /^\(1\) Inbox/);
  await page.getByRole('button', { name: `Review Codex, ${asking.id}` }).click();
  await page.getByRole('heading', { name: 'Codex asks to run a command' }).waitFor();
}

/** Resolves when nobody waits, and checks the texts at which buttons were pressed early. */
async function answered(by: string, early: readonly string[]): Promise<void> {
  await shows(by);
  await card().waitFor({ state: 'detached' });
  await page.keyboard.press('Escape');
  await shows('No agent waits for you');
  await page.getByLabel('Inbox', { exact: true }).waitFor();
  assert.deepEqual(await page.evaluate('globalThis.hasty'), early);
}

test('the bell leads to a card with the whole command, and after a decline the turn goes on', async () => {
  await berth.exec(asking.sandboxId, 'echo mine >~/proof');
  await reviewAfter(`ask-run ${REMOVAL}\nsay went on`);
  const detail = `detail of ${REMOVAL}`;
  assert.equal(await card().locator('pre').textContent(), detail);
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), TELEPHONE.width);
  await decide('Decline');
  await answered('Answered by Olive Ogden: declined.', [detail]);
  await open(asking);
  await shows('went on');
  await page.getByText('Ready for a message', { exact: true }).waitFor();
  assert.equal(await proof(), 'mine\n');
});

test('a long command is accepted after it was shown whole, and then runs', async () => {
  await reviewAfter(`ask-run ${LONG}\nsay done`);
  await page.getByText('This is not all of it.').waitFor();
  const part = (await card().locator('pre').textContent()) ?? '';
  await assertDisabled(page, 'Accept', /Show it whole first/);
  await card().getByRole('button', { name: 'Accept', exact: true }).dispatchEvent('click');
  await decide('Show it whole');
  await shows(/^detail of echo accepted .* THE-END$/);
  assert.equal(await proof(), 'mine\n');
  await decide('Accept');
  await answered('Answered by Olive Ogden: accepted.', [part, `detail of ${LONG}`]);
  await open(asking);
  await shows('done');
  assert.equal(await proof(), 'accepted\n');
});

test('an approval that the API answers meanwhile shows who answered and how', async () => {
  await reviewAfter('ask for more');
  const { pendingInput } = await berth.call('GET', `/v1/agent-sessions/${asking.id}`);
  const { requestId } = pendingInput as { requestId: unknown };
  await berth.call('POST', `/v1/agent-sessions/${asking.id}/answer`, { requestId, decision: 'decline' });
  await answered('Answered by Olive Ogden: declined.', ['detail of for more']);
  const { activity } = await berth.call('GET', `/v1/orgs/${berth.orgId}/activity?sandboxId=${asking.sandboxId}`);
  const decisions = (activity as { details: { decision?: string } }[]).flatMap(({ details }) => details.decision ?? []);
  assert.deepEqual(decisions, ['decline', 'accept', 'decline']);
  assert.deepEqual(person.complaints, []);
});
