// The metrics of a sandbox in a real browser.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { Page } from 'playwright-core';
import { ExecRefusal } from '../../../api/test/world/guests/exec-refusal.ts';
import { idleMetrics } from '../../../api/test/world/host-stand-in.ts';
import { insertActivity } from '../../../api/src/store/activity/activity.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { addressOf, startConsole, type ConsoleSite } from '../browser.ts';
import { assertPollsOnlyShown } from '../hands.ts';

const STEP_MS = 10_000;
const GAP = {
  cpuUsedPercent: null,
  residentMib: null,
  unsharedMib: null,
  diskUsedMib: null,
  networkInPerSecond: null,
  networkOutPerSecond: null,
};

let site: ConsoleSite;
/** Windows that the host was asked for. */
let windows: string[] = [];
/** Sandboxes whose live figures were read. */
let liveReads: string[] = [];
before(async () => {
  site = await startConsole();
});
after(() => site.close());
beforeEach(() => {
  windows = [];
  liveReads = [];
  site.api.front.metrics = (id) => {
    liveReads.push(id);
    const { host, ...others } = idleMetrics();
    const seconds = Date.now() / 1_000;
    const bytes = Math.round(seconds * 40_000 + Math.sin(seconds / 5) * 60_000);
    return {
      ...others,
      host: {
        ...host,
        cpuMs: Math.round(seconds * 300),
        networkInBytes: bytes,
        networkOutBytes: Math.round(bytes / 3),
      },
    };
  };
  // Ten minutes with a gap from the third to the fifth minute.
  site.api.front.metricsHistory = (_id, query) => {
    windows.push(query.get('windowSeconds') ?? '');
    const end = Math.floor(Date.now() / STEP_MS);
    const points = Array.from({ length: 60 }, (_, index) => ({ atUnixMs: (end - 59 + index) * STEP_MS, index }))
      .filter(({ index }) => index <= 12 || index >= 30)
      .map(({ atUnixMs, index }) =>
        index === 12
          ? { atUnixMs, ...GAP }
          : {
              atUnixMs,
              cpuUsedPercent: 30 + 25 * Math.sin(index / 4),
              residentMib: 320 + index * 4,
              unsharedMib: 60 + index * 2,
              diskUsedMib: 20 + index / 2,
              networkInPerSecond: 40_000 + 30_000 * Math.sin(index / 3),
              networkOutPerSecond: 12_000 + 9_000 * Math.cos(index / 5),
            },
      );
    return { stepSeconds: 10, points };
  };
});

async function addEntry(sandboxId: string, kind: 'sandbox_stopped' | 'sandbox_woken', minutesAgo: number) {
  const { db, orgId, projectId } = site.api;
  await db.transaction().execute(async (trx) => {
    const actor = { kind: 'system', id: null, userId: null } as const;
    await insertActivity(trx, { orgId, projectId, sandboxId, actor, kind, details: {} });
    await trx
      .updateTable('activity')
      .set({ at: new Date(Date.now() - minutesAgo * 60_000) })
      .where('sandbox_id', '=', sandboxId)
      .where('kind', '=', kind)
      .execute();
  });
}

/** Whether the first chart has the colour of its line near a share of its width. */
async function hasLineAt(page: Page, share: number): Promise<boolean> {
  return await page.evaluate<boolean>(`(() => {
    const canvas = document.querySelector('canvas');
    const colour = getComputedStyle(document.documentElement).getPropertyValue('--accent').trim();
    const parts = [1, 3, 5].map((from) => Number.parseInt(colour.slice(from, from + 2), 16));
    // The plot begins behind the labels of its axis.
    const [left, right] = [68 * devicePixelRatio, canvas.width - 12 * devicePixelRatio];
    const x = Math.round(left + (right - left) * ${share});
    const { data } = canvas.getContext('2d').getImageData(x - 2, 0, 5, canvas.height);
    const isLine = (at) => data[at + 3] > 200 && parts.every((part, index) => Math.abs(part - data[at + index]) < 20);
    return Array.from({ length: data.length / 4 }, (_, pixel) => pixel * 4).some(isLine);
  })()`);
}

test('charts begin with the history, go on live, and show gaps, sleeps and wakes', async () => {
  const { id } = await site.api.makeSandbox('ready', { name: 'measured' });
  await addEntry(id, 'sandbox_stopped', 8);
  await addEntry(id, 'sandbox_woken', 5);
  const { person, page } = await site.open(`/sandboxes/${id}/metrics`);
  await page.getByRole('img', { name: /^CPU: Used, of all vCPUs [\d.]+ %, at most 5\d %$/ }).waitFor();
  await page.getByRole('img', { name: /^Network: Received [\d.]+ [KM]?i?B\/s, .*Sent [\d.]+ / }).waitFor();
  await page.getByText(/^In this period: asleep \d\d:\d\d:\d\d, woken \d\d:\d\d:\d\d\.$/).waitFor();
  await page.getByText('Inside the sandbox: 120 MiB of 960 MiB used.').waitFor();
  assert.deepEqual(
    [await hasLineAt(page, 0.1), await hasLineAt(page, 0.35), await hasLineAt(page, 0.7)],
    [true, false, true],
  );
  await person.look('measured', 'metrics');

  const disk = page.locator('section', { has: page.getByRole('heading', { name: 'Disk' }) });
  await disk.getByText('Show the figures').click();
  const table = page.getByRole('table', { name: 'Disk, newest first' });
  await table
    .getByRole('row', { name: /no figure/ })
    .first()
    .waitFor();
  await table
    .getByRole('row', { name: /\d MiB$/ })
    .first()
    .waitFor();
  // The bar of the narrow page would lie over what was scrolled behind it.
  await page.evaluate('scrollTo(0, 0)');
  await person.look('measured', 'metrics-table');
});

test('times, charts and tooltips are in UTC until local time is chosen, which is kept', async () => {
  const { id } = await site.api.makeSandbox('ready', { name: 'zoned' });
  await addEntry(id, 'sandbox_woken', 5);
  const { page, person } = await site.open('/me');
  await page.addInitScript(
    'globalThis.drawn = []; const { fillText } = CanvasRenderingContext2D.prototype;' +
      'CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {' +
      'drawn.push(text); fillText.call(this, text, ...at) }',
  );
  const emulation = await page.context().newCDPSession(page);
  await emulation.send('Emulation.setTimezoneOverride', { timezoneId: 'Asia/Kolkata' });
  await person.open(addressOf(`/sandboxes/${id}/metrics`));
  const untilIn = async (zone: string): Promise<void> => {
    const minute = new Intl.DateTimeFormat('en-GB', { timeStyle: 'short', timeZone: zone });
    const minutes = Array.from({ length: 12 }, (_, ago) => minute.format(Date.now() - ago * 60_000));
    await page.getByText(new RegExp(`^In this period: woken (${minutes.join('|')}):`)).waitFor();
    await untilTrue('the axis follows', async () => {
      const drawn = await page.evaluate<string[]>('drawn.splice(0)');
      return drawn.some((label) => minutes.includes(label));
    });
  };
  await untilIn('UTC');
  await page.getByText(/Times are UTC\./).waitFor();
  assert.match((await page.locator('time').first().getAttribute('title')) ?? '', / UTC$/);
  await page.getByRole('button', { name: 'Account: Ada Lovelace' }).click();
  await page.evaluate('drawn.length = 0');
  await page.getByRole('radio', { name: 'Local' }).click();
  await untilIn('Asia/Kolkata');
  assert.match((await page.locator('time').first().getAttribute('title')) ?? '', / GMT\+5:30$/);
  await page.reload();
  await page.getByText(/Times are Asia\/Calcutta\./).waitFor();
  await untilIn('Asia/Kolkata');
  await page.getByText('Show the figures').first().click();
  await page.getByRole('columnheader', { name: 'Time (Asia/Calcutta)' }).waitFor();
});

test('the address keeps the period, and a new one reads its own history', async () => {
  const { id } = await site.api.makeSandbox('ready', { name: 'periods' });
  const { page } = await site.open(`/sandboxes/${id}/metrics?range=1h`);
  await page.getByRole('heading', { name: 'CPU' }).waitFor();
  assert.equal(await page.getByLabel('1 hour').isChecked(), true);
  await page.getByText(/^Figures since \d\d:\d\d:\d\d\.$/).waitFor();
  await Promise.all([
    page.waitForResponse((response) => response.url().includes('windowSeconds=86400')),
    page.getByLabel('24 hours').click(),
  ]);
  await page.waitForURL(/range=24h$/);
  assert.deepEqual([windows[0], windows.includes('86400')], ['3600', true]);
});

test('a sleeping sandbox keeps its history, with the reason and a button to wake it', async () => {
  const { id } = await site.api.makeSandbox('stopped', { name: 'sleeper', wakes_from: 'snapshot' });
  const { person, page } = await site.open(`/sandboxes/${id}/metrics`);
  await page.getByText('The sandbox is asleep. Its history stays; this page never wakes it.').waitFor();
  await page.getByRole('img', { name: /^Memory: On the host [\d.]+ MiB/ }).waitFor();
  await person.look('sleeper', 'metrics-asleep');
  assert.equal(liveReads.includes(id), false);
  const main = page.getByRole('main').locator('section').first();
  await main.getByRole('button', { name: 'Wake' }).click();
  await page.getByText('Waking').first().waitFor();
  const { status } = (await site.api.call('GET', `/v1/sandboxes/${id}`)).body.sandbox;
  assert.equal(status, 'waking');
});

test('a host without a history says so, and live figures are shown all the same', async () => {
  site.api.front.metricsHistory = () => {
    throw new ExecRefusal('route_not_found', 'no');
  };
  const { id } = await site.api.makeSandbox('ready', { name: 'older-host' });
  const { person, page } = await site.open(`/sandboxes/${id}/metrics`);
  await page.getByText(/runs an earlier release, which keeps no history of metrics/).waitFor();
  await page.getByRole('img', { name: /^CPU: Used, of all vCPUs \d/ }).waitFor();
  await person.look('older-host', 'metrics-older-host');
});

test('a sandbox without figures says when they begin', async () => {
  const { id } = await site.api.makeSandbox('stopped', { name: 'fresh', wakes_from: 'disk' });
  site.api.front.metricsHistory = () => ({ stepSeconds: 10, points: [] });
  const { person, page } = await site.open(`/sandboxes/${id}/metrics`);
  await page.getByText('No figures in this period yet').waitFor();
  await person.look('fresh', 'metrics-empty');
});

test('figures are polled only while their page is shown', async () => {
  const { id } = await site.api.makeSandbox('ready', { name: 'polled' });
  const { page } = await site.open('/me');
  await assertPollsOnlyShown(
    page,
    addressOf(`/sandboxes/${id}/metrics`),
    (path) => path.includes(`/${id}/metrics/`),
    async () => {
      await page.getByRole('link', { name: 'Previews' }).click();
      await page.getByRole('link', { name: 'Previews', exact: true }).and(page.locator('[aria-current]')).waitFor();
    },
  );
});
