// Runs one test file with Node's test runner, which gives it a process, and collects its events.
import { run, type EventData } from 'node:test';
import type { TestEvent } from 'node:test/reporters';
import type { CpuAccounts } from './cpu-accounts.ts';
import type { Cost } from './costs.ts';

/** Time after which a test fails that has no shorter timeout. */
const TEST_TIMEOUT_MS = 30 * 60_000;
/** Closing lines of Node's runner for one file. */
const COUNT_LINE = /^(?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$/;

export interface FileResult {
  file: string;
  cost: Cost;
  success: boolean;
  counts: EventData.TestSummary['counts'];
  /** For a reporter, in order, without the closing counts. */
  events: TestEvent[];
}

interface RunOptions {
  /** Pattern of titles. */
  name: string | undefined;
  signal: AbortSignal;
  accounts: CpuAccounts | undefined;
  /** On top of this process's. */
  environment: NodeJS.ProcessEnv | undefined;
}

export async function runFile(file: string, { name, signal, accounts, environment }: RunOptions): Promise<FileResult> {
  const startedAt = performance.now();
  const account = await accounts?.openFor(file);
  const stream = run({
    files: [file],
    concurrency: 1,
    timeout: TEST_TIMEOUT_MS,
    signal,
    execArgv: account?.execArgv ?? [],
    env: { ...process.env, ...environment, ...account?.environment },
    ...(name === undefined ? {} : { testNamePatterns: name }),
  });
  const events: TestEvent[] = [];
  let summary: EventData.TestSummary | undefined;
  for await (const event of stream as AsyncIterable<TestEvent>) {
    // Without a file: the summary of the run, not of its file.
    if (event.type === 'test:summary' && event.data.file === undefined) summary = event.data;
    else if (event.type !== 'test:diagnostic' || !COUNT_LINE.test(event.data.message)) events.push(event);
  }
  if (summary === undefined) throw new Error(`Node's test runner reported no summary for ${file}`);

  const seconds = (performance.now() - startedAt) / 1000;
  const cost = { seconds, cpuSeconds: (await account?.close()) ?? null };
  return { file, cost, success: summary.success, counts: summary.counts, events };
}
