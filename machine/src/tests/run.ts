// Runs the test files selected by `berth test`, each in its own process, the longest first. Prints
// a file's tests when the file has finished; at the end the slowest files, then the counts. Exits
// with 1 if a test failed.
import { once } from 'node:events';
import { spec } from 'node:test/reporters';
import { parseArgs } from 'node:util';
import { CpuAccounts } from './cpu-accounts.ts';
import { describeCounts, describeSlowest } from './report.ts';
import { startShared } from './shared-service.ts';
import { runFile, type FileResult } from './run-file.ts';
import { longestFirst, runOnIdleCores, timeoutMs } from './schedule.ts';
import { readCosts, writeCosts } from './costs.ts';

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
const results: FileResult[] = [];
const startedAt = performance.now();
const shared = values.serve === undefined ? undefined : await startShared(values.serve, accounts);
const measured = new Map(costs);
const running = new Map<string, number>();
const reports = setInterval(() => {
  for (const [file, since] of running) {
    const seconds = (performance.now() - since) / 1_000;
    if (seconds >= REPORT_AFTER_S) process.stderr.write(`» still running: ${file}, ${seconds.toFixed(0)} s\n`);
  }
}, REPORT_EVERY_MS);
try {
  await runOnIdleCores(longestFirst(positionals, costs), async (file) => {
    running.set(file, performance.now());
    const result = await runFile(file, {
      timeoutMs: values.timeout === undefined ? timeoutMs(costs.get(file)) : Number(values.timeout) * 1_000,
      name: values.name,
      signal: interrupted.signal,
      accounts,
      environment: shared?.environment,
    });
    running.delete(file);
    results.push(result);
    measured.set(file, result.cost);
    for (const event of result.events) reporter.write(event);
    const place = `${results.length}/${positionals.length}`;
    const outcome = `${result.success ? 'ok' : 'FAILED'}, ${result.cost.seconds.toFixed(1)} s`;
    process.stderr.write(`» ${place} ${file}: ${outcome}\n`);
  });
} finally {
  clearInterval(reports);
  const cost = await shared?.stop();
  if (cost !== undefined && values.serve !== undefined) measured.set(values.serve, cost);
}

reporter.end();
await once(reporter, 'end');
process.stdout.write(describeSlowest(results) + describeCounts(results, performance.now() - startedAt));
if (accounts !== undefined) {
  await accounts.close();
  await writeCosts(measured);
}
if (results.some(({ success }) => !success)) process.exitCode = 1;
