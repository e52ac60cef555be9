// Two people watch the list of sandboxes while a program changes them by the API.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type { Page, Request } from 'playwright-core';
import type { Person } from '../../../api/test/pages/browser.ts';
import { until } from '../../../os/test/until.ts';
import { startConsole, type ConsoleSite } from '../browser.ts';

const CREATED = 30;
const SLEPT = 10;
const DEADLINE_MS = 60_000;
/** Requests of a browser for all changes: the burst after a quiet time. An idle one sends 30. */
const MOST_REQUESTS = 200;
/** List and counts: several changes in one response of the feed cost no more than one. */
const READS_PER_RESPONSE = 2;
const REASON = 'the process of its VM exited';

const nameOf = (n: number): string => `job-${String(n).padStart(2, '0')}`;

interface Watcher {
  person: Person;
  page: Page;
  /** Requests to the API since it was last emptied. */
  requests: string[];
}

let site: ConsoleSite;
const watchers: Watcher[] = [];
const ids: string[] = [];
before(async () => {
  site = await startConsole([], { durable: true });
});
after(() => site.close());

async function everybody(work: (watcher: Watcher) => Promise<unknown>): Promise<void> {
  await Promise.all(watchers.map(work));
}

/** The number beside each status that the filters offer. */
const countsOf = (page: Page): Promise<Record<string, number>> =>
  page.evaluate(`Object.fromEntries([...document.querySelectorAll('main fieldset button')].map((button) =>
    button.innerText.trim().split(/\\s*\\n\\s*/)).map(([status, count]) => [status, Number(count)]))`);

async function untilCounts(expected: Readonly<Record<string, number>>): Promise<void> {
  await everybody(async ({ page }) => {
    let found = {};
    await until(
      () => `the counts are ${JSON.stringify(expected)} and not ${JSON.stringify(found)}`,
      async () => {
        found = await countsOf(page);
        return isDeepStrictEqual(found, expected) ? true : null;
      },
      DEADLINE_MS,
    );
  });
}

test('two people open an empty list, which waits for changes', async () => {
  for (let person = 0; person < 2; person += 1) {
    const opened = await site.open('/me');
    const { page } = opened;
    const requests: string[] = [];
    const pending = new Set<Request>();
    page.on('request', (request) => pending.add(request));
    page.on('requestfinished', (request) => pending.delete(request));
    page.on('requestfailed', (request) => pending.delete(request));
    const isWait = (request: Request): boolean => /\/activity\/follow\?.*since=/.test(request.url());
    const waits = page.waitForRequest(isWait);
    page.on('request', (request) => {
      const { pathname } = new URL(request.url());
      if (pathname.startsWith('/v1/')) requests.push(pathname);
    });
    await page.getByRole('link', { name: 'Sandboxes', exact: true }).click();
    await page.getByText('No sandboxes yet').waitFor();
    await waits;
    // The reads of the empty page are over: all further ones follow a change.
    await until(
      () => `only the feed is awaited: ${[...pending].map((request) => request.url()).join(' ')}`,
      () => Promise.resolve([...pending].every(isWait) ? true : null),
    );
    watchers.push({ ...opened, requests });
  }
});

test('sandboxes that a program creates appear in both lists', async () => {
  for (const { requests } of watchers) requests.length = 0;
  const created = Array.from({ length: CREATED }, async (_, n) => {
    const body = { agent: 'agent_one', projectId: site.api.projectId, name: nameOf(n) };
    return (await site.api.call('POST', `/v1/orgs/${site.api.orgId}/sandboxes`, { body })).body.sandbox.id as string;
  });
  ids.push(...(await Promise.all(created)));
  await untilCounts({ Ready: CREATED });
});

test('sleeping sandboxes and a lost one change in both lists, with few requests', async () => {
  await Promise.all(ids.slice(0, SLEPT).map((id) => site.api.call('POST', `/v1/sandboxes/${id}/sleep`)));
  await untilCounts({ Ready: CREATED - SLEPT, Asleep: SLEPT });
  site.api.host.killVm(ids[SLEPT] ?? '', 'QEMU exited with signal 9');
  await untilCounts({ Ready: CREATED - SLEPT - 1, Asleep: SLEPT, Failed: 1 });
  await everybody(async ({ page, requests }) => {
    await page.getByText(`${CREATED} sandboxes`, { exact: true }).waitFor();
    for (const [status, first, last] of [
      ['Asleep', 0, SLEPT],
      ['Failed', SLEPT, SLEPT + 1],
      ['Ready', SLEPT + 1, CREATED],
    ] as const) {
      for (let n = first; n < last; n += 1)
        await page.getByRole('row', { name: new RegExp(`${nameOf(n)} .*${status}`) }).waitFor();
    }
    const responses = requests.filter((path) => path.endsWith('/activity/follow')).length;
    assert.ok(requests.length <= MOST_REQUESTS, requests.join('\n'));
    assert.ok(requests.length - responses <= READS_PER_RESPONSE * responses, requests.join('\n'));
  });
  await watchers[0]?.person.look('Sandboxes', 'watching');
});

test('the page of the failed sandbox and the overview show why it failed', async () => {
  const [first, second] = watchers;
  assert.ok(first !== undefined && second !== undefined);
  await first.page.getByRole('button', { name: /^Failed/ }).click();
  await first.page.getByRole('link', { name: nameOf(SLEPT) }).click();
  await first.page.getByText(REASON).first().waitFor();
  await second.page.getByRole('link', { name: 'Overview' }).click();
  const failures = second.page.getByRole('region', { name: 'Failed sandboxes' });
  await failures.getByRole('row', { name: new RegExp(`${nameOf(SLEPT)}.*${REASON}`) }).waitFor();
  await second.person.look('Overview', 'watching-overview');
  for (const { person } of watchers) assert.deepEqual(person.complaints, []);
});
