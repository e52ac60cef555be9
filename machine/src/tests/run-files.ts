// Runs test files in one process with Node's test runner, and collects the events of each.
import { run, type EventData } from 'node:test';
import type { TestEvent } from 'node:test/reporters';
import { fileURLToPath } from 'node:url';
import type { CpuAccounts } from './cpu-accounts.ts';
import type { Group } from './schedule.ts';
import { resultsOf, type FileResult } from './file-results.ts';

/** Summary lines of Node's runner for one file. */
const COUNT_LINE = /^(?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$/;

const GROUP_PROGRAM = fileURLToPath(new URL('group.ts', import.meta.url));
const DEADLINE = new URL('file-deadline.ts', import.meta.url).href;
/** Time from the timeout of a test to that of its process, for the clean-up. */
const AFTER_LAST_TEST_MS = 60_000;

/** Limit of the lines of standard error in the failure of a process. */
const LAST_LINES = 20;

interface RunOptions {
  /** Timeout of the process, and of each test that has no shorter one. */
  timeoutMs: number;
  name: string | undefined;
  signal: AbortSignal;
  accounts: CpuAccounts | undefined;
  /** Added to this process's environment. */
  environment: NodeJS.ProcessEnv | undefined;
}

/** @returns a result per file, in the order of `files` */
export async function runFiles(
  files: Group,
  { timeoutMs, name, signal, accounts, environment }: RunOptions,
): Promise<FileResult[]> {
  const startedAt = performance.now();
  const account = await accounts?.openFor(files[0]);
  const program = files.length === 1 ? files[0] : GROUP_PROGRAM;
  // Later than the timeout of a test, which names it.
  const processTimeoutMs = timeoutMs + Math.min(timeoutMs, AFTER_LAST_TEST_MS);
  const stream = run({
    files: [program],
    concurrency: 1,
    timeout: timeoutMs,
    signal,
    execArgv: [`--import=${DEADLINE}`, ...(account?.execArgv ?? [])],
    env: {
      ...process.env,
      ...environment,
      ...account?.environment,
      BERTH_TEST_FILE_MS: String(processTimeoutMs),
      BERTH_TEST_FILES: files.join('\n'),
    },
    ...(name === undefined ? {} : { testNamePatterns: name }),
  });
  const events: TestEvent[] = [];
  const errorLines: string[] = [];
  let summary: EventData.TestSummary | undefined;
  for await (const event of stream as AsyncIterable<TestEvent>) {
    // An event without a file summarises the run, not its file.
    if (event.type === 'test:stderr') errorLines.push(event.data.message);
    if (event.type === 'test:fail' && event.data.name === program) addExit(event.data, errorLines);
    if (event.type === 'test:summary' && event.data.file === undefined) summary = event.data;
    else if (event.type !== 'test:diagnostic' || !COUNT_LINE.test(event.data.message)) events.push(event);
  }
  if (summary === undefined) throw new Error(`Node's test runner reported no summary for ${files.join(', ')}`);

  const cost = { seconds: (performance.now() - startedAt) / 1000, cpuSeconds: (await account?.close()) ?? null };
  if (files.length > 1) return resultsOf(files, events, summary.success);
  return [{ file: files[0], cost, success: summary.success, counts: summary.counts, events }];
}

/** Adds to the failure of a whole process how it ended, which Node's runner omits. */
function addExit({ details: { error } }: EventData.TestFail, errorLines: readonly string[]): void {
  const { exitCode, signal } = error as { exitCode?: number; signal?: string | null };
  const exit = signal == null ? `exit code ${exitCode}` : `signal ${signal}`;
  const last = errorLines.join('').trimEnd().split('\n').slice(-LAST_LINES).join('\n');
  error.cause = new Error(`the process ended with ${exit}, and wrote last:\n${last}`);
  error.cause.stack = error.cause.message;
}
