// A large org: 10,000 sandboxes, 1,000 members and 100,000 events.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import type { Page } from 'playwright-core';
import type { Person } from '../../../api/test/pages/browser.ts';
import { until } from '../../../os/test/until.ts';
import { addressOf, copySandbox, lookFromTop, startConsole, type ConsoleSite } from '../browser.ts';

const SANDBOXES = 10_000;
const MEMBERS = 1_000;
const ENTRIES = 100_000;
const DELETED = 200;
/** Elements of a page, at most. */
const MOST_ELEMENTS = 1_500;
const DEADLINE_MS = 60_000;

let site: ConsoleSite;
let org: string;
let person: Person;
let page: Page;
before(async () => {
  site = await startConsole();
  const { db, orgId } = site.api;
  org = `/orgs/${orgId}`;
  const { id } = await site.api.makeSandbox('stopped', { name: 'job-00001' });
  await copySandbox(site, id, 'job-', SANDBOXES - DELETED - 2);
  const old = await site.api.makeSandbox('stopped', { name: 'old-00001' });
  await copySandbox(site, old.id, 'old-', DELETED - 1);
  await site.api.makeSandbox('ready', { name: 'zebra' });
  await sql`
    with person as (
      insert into "user" (id, name, email, "emailVerified")
      select 'usr_' || md5(n::text), 'Person ' || n, 'person' || n || '@example.test', true
      from generate_series(2, ${MEMBERS}::integer) n returning id)
    insert into membership (org_id, user_id, role) select ${orgId}, id, 'viewer' from person`.execute(db);
  await sql`
    insert into activity (id, org_id, kind, actor_kind, subject_kind, subject_id, details, at)
    select 'act_' || md5(n::text), ${orgId}, 'org_updated', 'system', 'org', ${orgId}, '{}',
      now() - n * interval '1 second'
    from generate_series(1, ${ENTRIES}::integer) n`.execute(db);
  ({ person, page } = await site.open(`${org}/sandboxes`));
});
after(() => site.close());

const elements = (): Promise<number> => page.evaluate('document.querySelectorAll("*").length');

test('a list of thousands shows its first rows and counts, and stays small while it scrolls', async () => {
  await page.getByRole('row', { name: /zebra.*Ready/ }).waitFor();
  await page.getByRole('button', { name: new RegExp(`^Asleep ${SANDBOXES - 1}$`) }).waitFor();
  await until(
    'five pages are loaded',
    async () => {
      await page.evaluate('window.scrollTo(0, document.documentElement.scrollHeight)');
      return (await page.getByText('500+ sandboxes').isVisible()) ? true : null;
    },
    DEADLINE_MS,
  );
  assert.ok((await elements()) <= MOST_ELEMENTS, String(await elements()));
});

test('the palette finds one of ten thousand by three letters', async () => {
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: /^Command/ }).fill('zeb');
  await page.getByRole('option', { name: /^zebra/ }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'zebra' }).waitFor();
});

test('two hundred chosen sandboxes are deleted after one confirmation; failures are listed by name', async () => {
  await page.goto(addressOf(`${org}/sandboxes?q=old-`));
  await page.getByText('100+ sandboxes').waitFor();
  await until(
    'two pages are loaded',
    async () => {
      await page.evaluate('window.scrollTo(0, document.documentElement.scrollHeight)');
      return (await page.getByText(`${DELETED} sandboxes`, { exact: true }).isVisible()) ? true : null;
    },
    DEADLINE_MS,
  );
  await page.getByRole('checkbox', { name: 'Choose all' }).check();
  const bar = page.getByRole('region', { name: 'Chosen sandboxes' });
  await bar.getByText(`${DELETED} chosen`).waitFor();
  // The host does not respond for three of them.
  const failing = ['old-00004', 'old-00050', 'old-00150'];
  const rows = await site.api.db.selectFrom('sandbox').select('id').where('name', 'in', failing).execute();
  const error = { code: 'host_unavailable', message: 'the host does not respond' };
  for (const { id } of rows)
    await page.route(`**/v1/sandboxes/${id}/destroy`, (route) => route.fulfill({ status: 409, json: { error } }));
  let asked = 0;
  page.on('request', (request) => (asked += request.url().endsWith('/destroy') ? 1 : 0));
  await bar.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByRole('alertdialog', { name: `Delete ${DELETED} sandboxes?` }).waitFor();
  await page.getByRole('button', { name: 'Delete them' }).click();
  await bar.getByText(`The action failed for ${failing.length} sandboxes`).waitFor();
  for (const name of failing) await bar.getByText(`${name}: the host does not respond`).waitFor();
  assert.equal(asked, DELETED);
  const deleted = site.api.steps.filter(({ kind }) => kind === 'destroy').map(({ step }) => step.sandboxId);
  assert.equal(new Set(deleted).size, DELETED - failing.length);
});

test('a thousand members are all listed, and the page stays small', async () => {
  await page.goto(addressOf(`${org}/members`));
  await page
    .getByRole('row', { name: /^Person \d/ })
    .first()
    .waitFor();
  assert.ok((await elements()) <= MOST_ELEMENTS, String(await elements()));
  const table = page.getByRole('table', { name: 'Members' });
  assert.equal(await table.getAttribute('aria-rowcount'), String(MEMBERS + 2));
  await lookFromTop(person, 'Members', 'scale-members');
});

test('a hundred thousand events load page by page, and a filter shows its own', async () => {
  await page.goto(addressOf(`${org}/activity`));
  const events = page.locator('main li');
  await events.first().waitFor();
  const first = await events.count();
  await page.getByRole('button', { name: 'Show more' }).click();
  await until('a second page', async () => ((await events.count()) === 2 * first ? true : null), DEADLINE_MS);
  await page.getByRole('combobox', { name: 'Kind of event' }).selectOption('sandbox_destroy_requested');
  const deletes = events.filter({ hasText: 'Delete requested' });
  await until('a page of deletes', async () => ((await deletes.count()) === first ? true : null), DEADLINE_MS);
  assert.equal(await events.count(), first);
  assert.deepEqual(person.complaints, []);
});
