// `berth test`: runs every test of every workspace in one run of Node's test runner, on a machine
// that is ready.
import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { OperatorFailure } from '../output/failure.ts';
import { CHECKOUT } from '../roles/installation.ts';
import { setUp } from '../setup/setup.ts';
import { runNode } from './bench.ts';
import type { VerbContext } from './context.ts';

const PATTERNS = ['*/test/**/*.test.ts', 'e2e/**/*.test.ts'];
/**
 * Test files at once: each may start databases and virtual machines, and timings of one must not
 * starve another.
 */
const CONCURRENCY = 2;
/** Deadline of one test file that hangs; tests have shorter ones of their own. */
const FILE_DEADLINE_MS = 30 * 60_000;
const PROGRESS_REPORTER = fileURLToPath(new URL('../output/test-progress.ts', import.meta.url));

export interface TestSelection {
  /** Parts of paths; a file is run when it has one of them. None: all files. */
  filters: readonly string[];
  /** Pattern of titles, as Node's test runner takes it. */
  name: string | undefined;
}

export async function test(context: VerbContext, selection: TestSelection): Promise<number> {
  const files = selectTests(findTests(), selection.filters);
  if (files.length === 0) {
    throw new OperatorFailure(
      `no test file's path has ${selection.filters.map((filter) => `'${filter}'`).join(' or ')} in it`,
    );
  }

  const ready = await setUp(context, { forTests: true });
  const flags = [`--test-concurrency=${CONCURRENCY}`, `--test-timeout=${FILE_DEADLINE_MS}`];
  flags.push('--test-reporter=spec', '--test-reporter-destination=stdout');
  flags.push(`--test-reporter=${PROGRESS_REPORTER}`, '--test-reporter-destination=stderr');
  if (selection.name !== undefined) flags.push(`--test-name-pattern=${selection.name}`);

  context.progress.say(`Running ${files.length} test files.`);
  const environment = { ...context.environment, BERTH_TEST_FILES: String(files.length) };
  return runNode(['--test', ...flags, ...files], { ...context, environment }, ready);
}

/** Paths of all test files, relative to the checkout, sorted. */
export function findTests(): string[] {
  const found = PATTERNS.flatMap((pattern) =>
    globSync(pattern, { cwd: CHECKOUT, exclude: (name) => name.includes('node_modules') }),
  );
  return [...new Set(found)].sort();
}

/** The files whose path has one of the filters in it. */
export function selectTests(files: readonly string[], filters: readonly string[]): string[] {
  return files.filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)));
}
