// Runs the test files selected by `berth test`, the longest first; short ones share a process,
// unless each is measured. Prints the tests of a file when its process has ended. Files that failed
// run again at the end, alone; a file that passes then is unstable, and counts as a failure only
// beyond MOST_UNSTABLE. Prints last the slowest files, the unstable ones with their first errors,
// and the counts. Exits with 1 if a file failed alone, or if too many were unstable.
import { once } from 'node:events';
import { spec } from 'node:test/reporters';
import { parseArgs } from 'node:util';
import { slowness } from '@berth/os/slowness.ts';
import { groupFiles } from './groups.ts';
import { CpuAccounts } from './cpu-accounts.ts';
import { confirmFailures, MOST_UNSTABLE, type Unstable } from './confirm.ts';
import { describeCounts, describeSlowest, describeUnstable } from './report.ts';
import { startShared } from './shared-service.ts';
import type { FileResult } from './file-results.ts';
import { runFiles } from './run-files.ts';
import { longestFirst, runOnIdleCores, timeoutMs, type Group } from './schedule.ts';
import { readCosts, writeCosts } from './costs.ts';

/** Files that share a core at most; lengthens the deadlines in them. */
const FILES_PER_CORE = 3;
/** Files that run for longer are named now and then. */
const REPORT_AFTER_S = 120;
const REPORT_EVERY_MS = 60_000;

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    name: { type: 'string' },
    profile: { type: 'boolean', default: false },
    serve: { type: 'string' },
    /** Seconds, for all files. */
    timeout: { type: 'string' },
  },
});
const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort());

const costs = await readCosts();
const accounts = values.profile ? await CpuAccounts.open() : undefined;
const reporter = new spec();
reporter.pipe(process.stdout);
let results: FileResult[] = [];
let unstable: Unstable[] = [];
const startedAt = performance.now();
const slower = slowness() * FILES_PER_CORE;
const shared = values.serve === undefined ? undefined : await startShared(values.serve, accounts);
const measured = new Map(costs);
const running = new Map<string, number>();
const reports = setInterval(() => {
  for (const [file, since] of running) {
    const seconds = (performance.now() - since) / 1_000;
    if (seconds >= REPORT_AFTER_S) process.stderr.write(`» still running: ${file}, ${seconds.toFixed(0)} s\n`);
  }
}, REPORT_EVERY_MS);
const runTogether = async (files: Group): Promise<FileResult[]> => {
  const name = files.length === 1 ? files[0] : `${files[0]} and ${files.length - 1} more`;
  running.set(name, performance.now());
  const limits = files.map((file) => timeoutMs(costs.get(file)));
  const results = await runFiles(files, {
    timeoutMs: values.timeout === undefined ? Math.max(...limits) : Number(values.timeout) * 1_000,
    name: values.name,
    signal: interrupted.signal,
    accounts,
    environment: { ...shared?.environment, BERTH_TEST_SLOWNESS: slower.toFixed(1) },
  });
  running.delete(name);
  for (const { file, cost } of results) measured.set(file, cost);
  return results;
};
const report = (place: string, { file, success, cost }: FileResult): void => {
  process.stderr.write(`» ${place} ${file}: ${success ? 'ok' : 'FAILED'}, ${cost.seconds.toFixed(1)} s\n`);
};
try {
  const groups = accounts === undefined ? groupFiles(positionals, costs) : positionals.map((file): Group => [file]);
  await runOnIdleCores(longestFirst(groups, costs), async (files) => {
    for (const result of await runTogether(files)) {
      results.push(result);
      for (const event of result.events) if (result.success) reporter.write(event);
      report(`${results.length}/${positionals.length}`, result);
    }
  });
  ({ results, unstable } = await confirmFailures(results, async (file) => {
    const [result] = await runTogether([file]);
    if (result === undefined) throw new Error(`${file} has no result`);
    report('alone', result);
    return result;
  }));
  for (const { file, success, events } of results) {
    const again = !success || unstable.some((other) => other.file === file);
    for (const event of events) if (again) reporter.write(event);
  }
} finally {
  clearInterval(reports);
  const cost = await shared?.stop();
  if (cost !== undefined && values.serve !== undefined) measured.set(values.serve, cost);
}

reporter.end();
await once(reporter, 'end');
process.stdout.write(describeSlowest(results) + (await describeUnstable(unstable, results.length)));
process.stdout.write(describeCounts(results, performance.now() - startedAt));
if (accounts !== undefined) {
  await accounts.close();
  await writeCosts(measured);
}
if (results.some(({ success }) => !success) || unstable.length > MOST_UNSTABLE) process.exitCode = 1;
