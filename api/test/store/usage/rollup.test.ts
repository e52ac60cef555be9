// Sums of closed intervals compared with the intervals: rolled up, split, closed late or open, in
// any window.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { sql } from 'kysely';
import { newId } from '../../../src/store/database/ids.ts';
import { cutUsageAt, lockUsageSums, rollUpUsage } from '../../../src/store/usage/rollup.ts';
import { usageByEndUser, usedMs, type EndUserUsage } from '../../../src/store/usage/sums.ts';
import { startApi, type TestApi } from '../../world/api.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

const START_MS = Date.UTC(2026, 0, 30, 22);
const HOUR_US = 3_600_000_000;
/** Four days: whole days, parts of days, and spans of several. */
const REACH_US = 96 * HOUR_US;

/** Microseconds from the start. */
type Instant = number;
interface Interval {
  id: string;
  begins: Instant;
  /** null: running. */
  ends: Instant | null;
  projectId: string;
  endUserId: string | null;
  vcpu: number;
}
interface Window {
  from: Instant;
  to: Instant;
  at: Instant;
  projectId?: string | undefined;
  endUserId?: string | undefined;
}

const textOf = (at: Instant): string => {
  const iso = new Date(START_MS + Math.floor(at / 1_000)).toISOString();
  return `${iso.slice(0, -1)}${String(at % 1_000).padStart(3, '0')}Z`;
};
const dateOf = (at: Instant): Date => new Date(START_MS + Math.floor(at / 1_000));
const msOf = (at: Instant): number => Math.floor(at / 1_000);

async function insert(orgId: string, interval: Interval): Promise<void> {
  await sql`
    insert into usage_interval (id, sandbox_id, org_id, project_id, end_user_id, vcpu, memory_gb, disk_gb, during)
    values (${interval.id}, ${newId('sandbox')}, ${orgId}, ${interval.projectId}, ${interval.endUserId},
      ${interval.vcpu}, 2, 10,
      tstzrange(${textOf(interval.begins)}, ${interval.ends === null ? null : textOf(interval.ends)}))`.execute(api.db);
}

/** An independent sum: every interval by itself, in whole milliseconds. */
function bruteForce(ledger: readonly Interval[], window: Window): Map<string, EndUserUsage & { owner: string | null }> {
  const sums = new Map<string, EndUserUsage & { owner: string | null }>();
  const until = Math.min(msOf(window.to), msOf(window.at));
  for (const { begins, ends, projectId, endUserId, vcpu } of ledger) {
    if (window.projectId !== undefined && projectId !== window.projectId) continue;
    if (window.endUserId !== undefined && endUserId !== window.endUserId) continue;
    const ms = Math.min(ends === null ? Infinity : msOf(ends), until) - Math.max(msOf(begins), msOf(window.from));
    if (ms <= 0) continue;
    const key = JSON.stringify([endUserId, vcpu]);
    const sum = sums.get(key) ?? { owner: endUserId, endUserId: endUserId ?? '', vcpu, memoryGb: 2, diskGb: 10, ms: 0 };
    sums.set(key, { ...sum, ms: sum.ms + ms });
  }
  return sums;
}

const byUserAndSize = (one: EndUserUsage, other: EndUserUsage): number =>
  one.endUserId.localeCompare(other.endUserId) || one.vcpu - other.vcpu;

async function assertAgrees(orgId: string, ledger: readonly Interval[], window: Window): Promise<void> {
  const { projectId, endUserId } = window;
  const asked = {
    orgId,
    projectId,
    endUserId,
    from: dateOf(window.from),
    to: dateOf(window.to),
    at: dateOf(window.at),
  };
  const expected = [...bruteForce(ledger, window).values()];
  assert.equal(
    await usedMs(api.db, asked),
    expected.reduce((sum, { ms }) => sum + ms, 0),
    JSON.stringify({ window, ledger }),
  );
  if (endUserId !== undefined) return;
  assert.deepEqual(
    (await usageByEndUser(api.db, asked)).toSorted(byUserAndSize),
    expected
      .filter(({ owner }) => owner !== null)
      .map(({ endUserId, vcpu, memoryGb, diskGb, ms }) => ({ endUserId, vcpu, memoryGb, diskGb, ms }))
      .toSorted(byUserAndSize),
  );
}

const inTrx = <T>(orgId: string, run: (trx: Parameters<typeof lockUsageSums>[0]) => Promise<T>): Promise<T> =>
  api.db.transaction().execute(async (trx) => {
    assert.equal(await lockUsageSums(trx, orgId), true);
    return await run(trx);
  });

/** Midnights, hours and arbitrary microseconds. */
const instant = fc.oneof(
  fc.integer({ min: 0, max: REACH_US }),
  fc.integer({ min: 0, max: 96 }).map((hours) => hours * HOUR_US),
  fc.integer({ min: 0, max: 96_000 }).map((ms) => 2 * HOUR_US + ms * 1_000),
);
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('use' as const),
      begins: instant,
      length: fc.integer({ min: 1, max: REACH_US }),
      short: fc.boolean(),
      runs: fc.boolean(),
      project: fc.integer({ min: 0, max: 1 }),
      endUser: fc.option(fc.integer({ min: 0, max: 2 })),
      vcpu: fc.integer({ min: 1, max: 2 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('close' as const), at: instant }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('roll up' as const), most: fc.integer({ min: 1, max: 6 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('cut' as const), at: instant }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('ask' as const),
      from: instant,
      to: instant,
      at: instant,
      project: fc.option(fc.integer({ min: 0, max: 1 })),
      endUser: fc.option(fc.integer({ min: 0, max: 2 })),
    }),
  },
);
const nothingOr = <T>(value: T | null): T | undefined => value ?? undefined;

test("every window's sum equals its intervals, rolled up, split, closed late or open", async () => {
  const projects = ['prj_one', 'prj_two'];
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 40, size: 'max' }), async (steps) => {
      const { orgId } = await api.makeOrg();
      const ledger: Interval[] = [];
      for (const one of steps) {
        switch (one.kind) {
          case 'use': {
            const begins = one.begins;
            const ends = begins + (one.short ? (one.length % 3_000) + 1 : one.length);
            const endUserId = one.endUser === null ? null : `user ${one.endUser}`;
            const interval = {
              id: newId('usageInterval'),
              begins,
              ends: one.runs ? null : ends,
              projectId: projects[one.project] ?? '',
              endUserId,
              vcpu: one.vcpu,
            };
            ledger.push(interval);
            await insert(orgId, interval);
            break;
          }
          case 'close': {
            // As for a lost VM: ends at an instant that may lie days before the sums.
            const running = ledger.find(({ ends }) => ends === null);
            if (running === undefined) break;
            running.ends = Math.max(running.begins + 1, one.at);
            await sql`
              update usage_interval set during = tstzrange(lower(during), ${textOf(running.ends)})
              where id = ${running.id}`.execute(api.db);
            break;
          }
          case 'roll up':
            await inTrx(orgId, (trx) => rollUpUsage(trx, orgId, one.most));
            break;
          case 'cut':
            await inTrx(orgId, (trx) => cutUsageAt(trx, orgId, dateOf(one.at)));
            break;
          case 'ask':
            await assertAgrees(orgId, ledger, {
              from: one.from,
              to: one.to,
              at: one.at,
              projectId: nothingOr(one.project === null ? null : (projects[one.project] ?? null)),
              endUserId: nothingOr(one.endUser === null ? null : `user ${one.endUser}`),
            });
            break;
        }
      }
      while ((await inTrx(orgId, (trx) => rollUpUsage(trx, orgId, 100))) > 0);
      await assertAgrees(orgId, ledger, { from: 0, to: 3 * REACH_US, at: 3 * REACH_US });
      // Rolled-up usage is read from the sums: without the intervals the result is the same.
      const closed = ledger.filter(({ ends }) => ends !== null);
      if (closed.length < ledger.length) return;
      await sql`alter table usage_interval rename to usage_interval_away`.execute(api.db);
      try {
        await sql`create table usage_interval (like usage_interval_away)`.execute(api.db);
        await assertAgrees(orgId, closed, { from: 0, to: 3 * REACH_US, at: 3 * REACH_US });
      } finally {
        await sql`drop table if exists usage_interval`.execute(api.db);
        await sql`alter table usage_interval_away rename to usage_interval`.execute(api.db);
      }
    }),
    { numRuns: 150 },
  );
});

test('the longest end user id is summed like any other', async () => {
  const { orgId } = await api.makeOrg();
  // Three bytes each in UTF-8, the maximum for a UTF-16 code unit; random, so incompressible.
  const endUserId = Array.from({ length: 512 }, (_, index) =>
    String.fromCharCode(0x4e00 + ((index * 7_919) % 20_000)),
  ).join('');
  const interval: Interval = {
    id: newId('usageInterval'),
    begins: 0,
    ends: HOUR_US,
    projectId: 'prj_one',
    endUserId,
    vcpu: 1,
  };
  await insert(orgId, interval);
  assert.equal(await inTrx(orgId, (trx) => rollUpUsage(trx, orgId, 10)), 1);
  await assertAgrees(orgId, [interval], { from: 0, to: REACH_US, at: REACH_US, endUserId });
  await assertAgrees(orgId, [interval], { from: 0, to: REACH_US, at: REACH_US });
});
