// Cost of a usage request by the size of the ledger: both usage routes over HTTP, for an org with
// ten thousand intervals of VM time and one with ten million, after the worker has summed them. The
// four take turns, so that other load on the host affects all. Ratios are of times: above 1 the
// long ledger has a cost. Fails when the sums differ from the intervals by a millisecond. Usage:
// npm run bench:usage -- [--rounds N] [--intervals N] [--json]
import { Progress } from '@berth/machine/output/progress.ts';
import { orgUsage } from '@berth/api/services/usage/usage.ts';
import { readClock } from '@berth/api/store/database/clock.ts';
import { usedMs } from '@berth/api/store/usage/sums.ts';
import { rollUpOrgUsage } from '@berth/api/workers/usage/rollup.ts';
import { openBenchControlPlane, type BenchOrg } from './api/control-plane.ts';
import { JsonCaller } from './world/client.ts';
import { hardware } from './world/hardware.ts';
import { readOptions } from './world/options.ts';
import { figureOf, percentile, renderTable, round, type TableRow } from './world/statistics.ts';
import {
  DAYS,
  END_USERS,
  fillLedger,
  finishLedger,
  prepareLedger,
  PROJECTS,
  RUNNING,
  SANDBOXES,
  sumOfIntervals,
  tidyLedger,
} from './usage/ledger.ts';

const SHORT = 10_000;
const WARM_UP_ROUNDS = 100;
/** Larger than the worker's transactions: nothing here waits for the org's lock. */
const BATCH = 20_000;

const options = readOptions({
  rounds: { type: 'string', default: '1500' },
  intervals: { type: 'string', default: '10000000' },
  json: { type: 'boolean', default: false },
});
const rounds = options.whole('rounds', 1, 100_000);
const long = Math.ceil(options.whole('intervals', SANDBOXES, 100_000_000) / SANDBOXES) * SANDBOXES;

const p99 = (values: readonly number[]): number => percentile(values, 0.99);
const ratio = (one: readonly number[], other: readonly number[]): { median: number; p99: number } => ({
  median: round(figureOf(one).median / figureOf(other).median, 2),
  p99: round(p99(one) / p99(other), 2),
});

/** Shuffled each time, so that none always follows the same one. */
function shuffled<T>(values: readonly T[]): T[] {
  const keyed = values.map((value) => ({ value, key: Math.random() }));
  return keyed.toSorted((one, other) => one.key - other.key).map(({ value }) => value);
}

const progress = new Progress();
const plane = await openBenchControlPlane();
const patient = plane.openPatiently();
try {
  const { db } = patient;
  const timed = async <T>(what: string, run: () => Promise<T>): Promise<{ value: T; seconds: number }> => {
    const startedAt = performance.now();
    const value = await progress.step(what, run);
    return { value, seconds: (performance.now() - startedAt) / 1_000 };
  };
  const ledgers: { org: BenchOrg; intervals: number }[] = [
    { org: plane.first, intervals: SHORT },
    { org: await plane.makeOrg(), intervals: long },
  ];
  await timed(`${SHORT} and ${long} intervals of machine time`, async () => {
    await prepareLedger(db);
    for (const { org, intervals } of ledgers) await fillLedger(db, org, intervals);
    await finishLedger(db);
  });
  const rolledUp = await timed('sums by day and billing period', async () => {
    for (const { org } of ledgers) while ((await rollUpOrgUsage(db, org.orgId, BATCH)) > 0);
    await tidyLedger(db);
  });
  const agreement = await timed('the sums against the intervals', async () => {
    const compared: { ofSums: number; ofIntervals: number }[] = [];
    for (const { org } of ledgers) {
      const at = await readClock(db);
      const { periodStartsAt, periodEndsAt } = await orgUsage(plane.context, org.orgId, {});
      const from = new Date(periodStartsAt);
      const ofSums = await usedMs(db, { orgId: org.orgId, from, to: new Date(periodEndsAt), at });
      compared.push({ ofSums, ofIntervals: await sumOfIntervals(db, org.orgId, { from, at }) });
    }
    return compared;
  });
  for (const { ofSums, ofIntervals } of agreement.value)
    if (ofSums !== ofIntervals) throw new Error(`the sums say ${ofSums} ms, the intervals ${ofIntervals} ms`);

  const port = await plane.serve();
  const targets = ledgers.flatMap(({ org, intervals }) => {
    const caller = new JsonCaller({ address: '127.0.0.1', port, token: org.token });
    return ['usage', 'usage/end-users'].map((route) => ({
      caller,
      route,
      intervals,
      path: `/v1/orgs/${org.orgId}/${route}`,
      ms: [] as number[],
    }));
  });
  await timed(`${rounds} calls of each`, async () => {
    for (let done = -WARM_UP_ROUNDS; done < rounds; done += 1) {
      for (const target of shuffled(targets)) {
        const startedAt = performance.now();
        await target.caller.call('GET', target.path);
        if (done >= 0) target.ms.push(performance.now() - startedAt);
      }
    }
  });
  for (const { caller } of targets) caller.close();

  const timesOf = (route: string, intervals: number): number[] =>
    targets.find((target) => target.route === route && target.intervals === intervals)?.ms ?? [];
  const machine = hardware();
  const told = (times: readonly number[]) => ({
    median: round(figureOf(times).median, 2),
    p99: round(p99(times), 2),
  });
  const result = {
    orgUsageRatio: ratio(timesOf('usage', long), timesOf('usage', SHORT)),
    endUsersRatio: ratio(timesOf('usage/end-users', long), timesOf('usage/end-users', SHORT)),
    orgUsageMs: { short: told(timesOf('usage', SHORT)), long: told(timesOf('usage', long)) },
    endUsersMs: { short: told(timesOf('usage/end-users', SHORT)), long: told(timesOf('usage/end-users', long)) },
    intervals: { short: SHORT, long },
    rollUp: {
      seconds: round(rolledUp.seconds, 2),
      microsecondsEach: round((rolledUp.seconds * 1e6) / (SHORT + long), 2),
    },
    sumsAgree: true,
    rounds,
    machine,
    versions: { node: process.version, postgres: plane.postgresVersion },
  };
  console.log(
    `\n${machine}, Node ${process.version}, PostgreSQL ${plane.postgresVersion}; ` +
      'client, server and Postgres share the cores\n' +
      `Ledgers of ${DAYS} days: ${SANDBOXES} sandboxes, ${END_USERS} end users, ${PROJECTS} projects, ` +
      `3 sizes, ${RUNNING} machines running, in unlogged tables\n` +
      `Summed in ${result.rollUp.seconds} s, ${result.rollUp.microsecondsEach} µs for an interval; ` +
      'the sums agree with the intervals to the millisecond\n',
  );
  const rows = targets.map(({ route, intervals, ms }): TableRow => ({
    label: `GET ${route}, ${intervals} intervals`,
    unit: 'ms',
    figure: figureOf(ms),
    count: ms.length,
  }));
  console.log(`${renderTable(rows)}\n`);
  for (const [label, { median, p99: tail }] of [
    ['usage of the org', result.orgUsageRatio],
    ['usage by end user', result.endUsersRatio],
  ] as const) {
    console.log(
      `${label}: with ${long} intervals ${median} times as long as with ${SHORT} ` +
        `by the median, ${tail} times by the 99th percentile`,
    );
  }
  if (options.values.json) console.log(JSON.stringify(result));
} finally {
  await patient.close();
  await plane.close();
}
