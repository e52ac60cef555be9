// Bad days of a service, on real processes: restarts, an absent database, a wrong address, a wrong
// clock, a newer API, a rate limit.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import type { FakeInstallation } from '../../../api/test/fake-installation.ts';
import { startOwnPostgres, type OwnPostgres } from '../../../api/test/world/database.ts';
import { freePort } from '../../../protocol/test/free-port.ts';
import { startInstalledConsole, type InstalledConsole } from '../installed/installation.ts';
import { deadlineOf } from '../../../os/test/until.ts';

const OTHER_NAME = 'berth.other.test';
const STALE = /^The service does not respond\. This is from /;

const DEADLINE_MS = 60_000;
const HOUR_MS = 3_600_000;

let installed: InstalledConsole;
let postgres: OwnPostgres;
let berth: FakeInstallation;
let projectId: string;
let list: string;
before(async () => {
  postgres = await startOwnPostgres();
  // A restarted API listens at the same address.
  const port = String(await freePort());
  installed = await startInstalledConsole({ BERTH_PORT: port }, postgres, [`${OTHER_NAME}:${port}`]);
  ({ berth } = installed);
  projectId = await berth.makeProject({ name: 'lab' });
  list = `${berth.url}/console/orgs/${berth.orgId}/sandboxes`;
  await make('steady');
});
after(() => installed.close());

async function make(name: string): Promise<void> {
  const { id } = await berth.create({ projectId, name });
  await berth.until(id, ({ status }) => status === 'ready');
}

/** Opens the list of the signed-in owner. @param script runs before those of the page */
async function openList(script = '', prepare = (_page: Page): unknown => undefined): Promise<Page> {
  const storageState = await installed.page.context().storageState();
  const context = await installed.browser.newContext({ storageState });
  const page = await context.newPage();
  page.setDefaultTimeout(deadlineOf(DEADLINE_MS));
  await page.addInitScript(script);
  await prepare(page);
  await page.goto(list);
  return page;
}

async function leave(page: Page): Promise<void> {
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await page.context().close();
}

const ready = (page: Page, name: string): Promise<void> =>
  page.getByRole('row', { name: new RegExp(`${name}.*Ready`) }).waitFor();

test('an API that restarts within the tolerance shows no error, and the page goes on', async () => {
  // A restart takes longer on a busy computer.
  const page =
    await openList(`const { now } = Date; const start = now(); Date.now = () => start + (now() - start) / 100;
    globalThis.reported = [];
    new MutationObserver(() => {
      const found = [...document.querySelectorAll('[role=alert], main output span')].map(({ innerText }) => innerText);
      globalThis.reported.push(...found.filter((text) => /\\w/.test(text) && text !== 'Loading'));
    }).observe(document, { childList: true, subtree: true, characterData: true })`);
  await ready(page, 'steady');
  const failed = page.waitForEvent('requestfailed');
  await berth.end('api');
  await failed;
  await berth.run('api');
  await make('after-restart');
  await ready(page, 'after-restart');
  assert.deepEqual(await page.evaluate('globalThis.reported'), []);
  await leave(page);
});

test('an absent database leaves the data on the page, which says how old they are, and returns', async () => {
  const page = await openList();
  await ready(page, 'steady');
  await postgres.kill();
  await page.getByText(STALE).waitFor();
  await ready(page, 'steady');
  await postgres.start();
  await page.getByText(STALE).waitFor({ state: 'detached' });
  await make('after-postgres');
  await ready(page, 'after-postgres');
  await leave(page);
});

test('a computer whose clock is two hours off shows the right ages', async () => {
  for (const hours of [-2, 2]) {
    const page = await openList(`const { now } = Date; Date.now = () => now() + ${hours * HOUR_MS}`);
    await ready(page, 'steady');
    await page.getByRole('row', { name: /steady.*\b\d+(?:s|min) ago.*\b\d+(?:s|min) ago/ }).waitFor();
    await leave(page);
  }
});

test('statuses, agents and kinds of a newer API are shown by their names', async () => {
  const page = await openList('', (opened) =>
    opened.route('**/v1/**', async (route) => {
      if (route.request().url().includes('/follow')) return await route.continue();
      const response = await route.fetch();
      const body = (await response.text())
        .replaceAll('"status":"ready"', '"status":"hibernating"')
        .replaceAll('"agent":"agent_one"', '"agent":"agent_nine"')
        .replaceAll('"kind":"sandbox_ready"', '"kind":"sandbox_teleported"');
      await route.fulfill({ response, body });
    }),
  );
  await page.getByRole('row', { name: /steady.*hibernating/ }).waitFor();
  await page.getByRole('link', { name: 'steady' }).click();
  await page.getByRole('heading', { name: 'steady' }).waitFor();
  for (const text of ['hibernating', 'agent_nine']) await page.getByText(text, { exact: true }).first().waitFor();
  await page.getByRole('navigation', { name: 'Sandbox' }).getByRole('link', { name: 'Activity' }).click();
  await page.getByText('sandbox_teleported').first().waitFor();
  await leave(page);
});

test('a rate limit delays a page and an action, without an error', async () => {
  let refused = 0;
  const page = await openList('', (opened) =>
    opened.route(/\/sandboxes\?|\/sleep$/, async (route) => {
      refused += 1;
      if (refused % 2 === 0) return await route.continue();
      const error = { code: 'rate_limited', message: 'too many requests' };
      return await route.fulfill({ status: 429, headers: { 'Retry-After': '1' }, json: { error } });
    }),
  );
  await ready(page, 'steady');
  assert.equal(refused, 2);
  await page.getByRole('link', { name: 'steady' }).click();
  await page.getByRole('button', { name: 'Sleep' }).click();
  await page.getByText('Asleep', { exact: true }).waitFor();
  assert.equal(refused, 4);
  assert.equal(await page.getByRole('alert').count(), 0);
  await leave(page);
});

test('an address that is not the own one is refused by name', async () => {
  const { page } = installed;
  await page.goto(list.replace('127.0.0.1', OTHER_NAME));
  await page.getByRole('heading', { name: 'Wrong address' }).waitFor();
  await page.getByText(`http://${OTHER_NAME}`).waitFor();
});
