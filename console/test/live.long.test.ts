// Live updates in a real browser: a change is seen without a poll, one tab asks for all, and
// another takes over. The polls of the pages are minutes apart.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page, Request } from 'playwright-core';
import { SETTINGS } from '../../api/test/world/settings.ts';
import { deadlineOf, untilTrue } from '../../os/test/until.ts';
import { insertActivity } from '../../api/src/store/activity/activity.ts';
import { followFeed } from '../src/live/feed.ts';
import { Pace } from '../src/live/pace.ts';
import { staleBy, type Stale } from '../src/live/stale.ts';
import { addressOf, startConsole, type ConsoleSite } from './browser.ts';

let site: ConsoleSite;
let list: string;
before(async () => {
  // Browsers have locks only on secure connections.
  site = await startConsole([`--unsafely-treat-insecure-origin-as-secure=${SETTINGS.publicUrl}`]);
  list = `/orgs/${site.api.orgId}/sandboxes`;
});
after(() => site.close());

/** Changes a sandbox as a service does, with the entry of the change. */
async function fail(sandboxId: string): Promise<void> {
  const { db, orgId } = site.api;
  await db.transaction().execute(async (trx) => {
    await trx
      .updateTable('sandbox')
      .set({ status: 'failed', status_reason_code: 'vm_lost', status_reason_message: 'QEMU exited' })
      .where('id', '=', sandboxId)
      .execute();
    const actor = { kind: 'system', id: null, userId: null } as const;
    await insertActivity(trx, { orgId, sandboxId, actor, kind: 'sandbox_failed', details: { reason: 'QEMU exited' } });
  });
}

/** Counts the requests that wait for the feed, and how many of them are open. */
function waits(page: Page): { sent: number; open: number } {
  const counts = { sent: 0, open: 0 };
  const isWait = (request: Request): boolean => /\/activity\/follow\?.*since=/.test(request.url());
  page.on('request', (request) => {
    if (isWait(request)) {
      counts.sent += 1;
      counts.open += 1;
    }
  });
  const ended = (request: Request): void => {
    if (isWait(request)) counts.open -= 1;
  };
  page.on('requestfinished', ended);
  page.on('requestfailed', ended);
  return counts;
}

const failed = (page: Page, name: string): Promise<void> =>
  page.getByRole('row', { name: new RegExp(`${name}.*Failed`) }).waitFor();

for (const locks of ['with', 'without'] as const) {
  test(`a change is seen in every tab while one of them asks, in a browser ${locks} locks`, async () => {
    const names = [`first-${locks}`, `second-${locks}`];
    const made = [];
    for (const name of names) made.push(await site.api.makeSandbox('ready', { name }));
    const { page, person } = await site.open('/');
    const context = page.context();
    if (locks === 'without')
      await context.addInitScript(() => Object.defineProperty(navigator, 'locks', { value: undefined }));
    const first = waits(page);
    await person.open(addressOf(list));
    assert.equal(await page.evaluate('navigator.locks !== undefined'), locks === 'with');
    await page
      .getByRole('row', { name: /first-.*Ready/ })
      .first()
      .waitFor();
    await untilTrue('the first tab waits', () => first.open === 1);
    const other = await context.newPage();
    other.setDefaultTimeout(deadlineOf(60_000));
    const second = waits(other);
    await other.goto(addressOf(list));
    await other
      .getByRole('row', { name: /first-.*Ready/ })
      .first()
      .waitFor();

    await fail(made[0]?.id ?? '');
    await Promise.all([failed(page, names[0] ?? ''), failed(other, names[0] ?? '')]);
    assert.equal(second.sent, 0, 'the second tab asks too');

    await page.close();
    await untilTrue('the second tab waits', () => second.open === 1);
    await fail(made[1]?.id ?? '');
    await failed(other, names[1] ?? '');
    await context.close();
  });
}

for (const locks of ['with', 'without'] as const) {
  test(`a feed that is refused for good is asked once, in a browser ${locks} locks`, async () => {
    const { page, person } = await site.open('/');
    if (locks === 'without')
      await page.context().addInitScript(() => Object.defineProperty(navigator, 'locks', { value: undefined }));
    // The feed of the first page ends.
    await page.goto('about:blank');
    let asked = 0;
    await page.route('**/activity/follow?*', (route) => {
      asked += 1;
      return route.fulfill({ status: 404, json: { error: { code: 'route_not_found', message: 'no such path' } } });
    });
    await person.open(addressOf(list));
    assert.equal(await page.evaluate('navigator.locks !== undefined'), locks === 'with');
    await untilTrue('the feed is asked', () => asked > 0);
    // Far more round trips than a repeat takes.
    for (let trip = 0; trip < 30; trip += 1)
      await page.evaluate("fetch('/health').then((response) => response.text())");
    assert.equal(asked, 1);
  });
}

test('the page of a sandbox shows its change, and the counts follow', async () => {
  const { id } = await site.api.makeSandbox('ready', { name: 'watched' });
  const { page } = await site.open(`/sandboxes/${id}`);
  const counts = waits(page);
  await page.getByRole('heading', { name: 'watched' }).waitFor();
  await untilTrue('the tab waits', () => counts.open === 1);
  await fail(id);
  await page.getByText('QEMU exited').first().waitFor();
});

const ENTRY = { kind: 'sandbox_ready', sandboxId: 'sbx_1' };

test('entries make the responses of their area stale, once each', () => {
  const keys = (...kinds: string[]): string[] =>
    staleBy(
      'org_1',
      kinds.map((kind) => ({ ...ENTRY, kind })),
    ).map(({ queryKey }) => queryKey.join('/'));
  const activity = 'orgs/org_1/activity';
  assert.deepEqual(keys('sandbox_ready', 'sandbox_failed'), ['orgs/org_1/sandboxes', 'sandboxes/sbx_1', activity]);
  assert.deepEqual(keys('preview_link_created'), ['sandboxes/sbx_1/previews', activity]);
  assert.deepEqual(keys('member_removed'), [
    'orgs',
    'orgs/org_1/members',
    'orgs/org_1/invitations',
    'orgs/org_1/sso',
    activity,
  ]);
  assert.deepEqual(keys('api_key_revoked'), ['orgs/org_1/api-keys', activity]);
  assert.deepEqual(keys('project_deleted'), ['orgs/org_1/projects', activity]);
  assert.deepEqual(keys('org_updated'), ['orgs', 'orgs/org_1/usage', 'orgs/org_1/billing', activity]);
  assert.deepEqual(keys('invented_kind').at(-1), activity);
});

test('changes now and then are seen at once; a busy org costs a request a second, with its reads', () => {
  const pace = new Pace();
  const burst = Array.from({ length: 80 }, () => pace.after(10, 4));
  const slow = burst.indexOf(4_000);
  assert.ok(slow >= 50 && slow < 55, burst.join(', '));
  assert.ok(burst.slice(slow).every((pauseMs) => pauseMs === 4_000));
  let ms = 0;
  for (let responses = 0; responses < 100; responses += 1) ms += 10 + pace.after(10, 4);
  assert.ok(ms > 390_000, `400 requests in ${ms} ms`);
  pace.after(25_000, 1);
  assert.deepEqual([pace.after(10, 4), pace.after(10, 4)], [100, 100]);
});

test('a feed with a gap or a failure starts again, and a final error ends it', async () => {
  const pauses: number[] = [];
  const stale: Stale[][] = [];
  const asked: (string | undefined)[] = [];
  let gaps = 0;
  const entry = ENTRY as never;
  await followFeed(
    {
      orgId: 'org_1',
      now: () => 0,
      onGap: () => (gaps += 1),
      onStale: (found) => {
        stale.push([...found]);
        return 0;
      },
      onError: (error) => error !== 'final',
      pause: async (ms) => void pauses.push(ms),
      since: async (cursor) => {
        asked.push(cursor);
        const step = asked.length;
        if (step === 11) throw new Error('temporary');
        if (step === 15) throw 'final';
        return { activity: step === 1 ? [] : [entry], cursor: String(step), hasMore: step === 9 };
      },
    },
    new AbortController().signal,
  );
  assert.deepEqual(asked.slice(0, 3), [undefined, '1', '2']);
  // The page of more entries than are read, and the failure, each start from a new moment.
  assert.deepEqual([asked[9], asked[11], gaps], [undefined, undefined, 3]);
  assert.deepEqual(pauses, [...Array(8).fill(100), 1_000, 100, 100]);
  assert.equal(stale.length, 9);
});
