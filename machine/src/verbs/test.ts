// `berth test`: runs the tests of all workspaces on a prepared host.
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { OperatorFailure } from '../output/failure.ts';
import { CHECKOUT } from '../config/folders.ts';
import { readCosts } from '../tests/costs.ts';
import { expectedMinutes } from '../tests/schedule.ts';
import { setUp } from '../setup/setup.ts';
import { runNode } from './bench.ts';
import type { VerbContext } from './context.ts';

const PATTERNS = ['*/test/**/*.test.ts', 'e2e/**/*.test.ts'];
/** Shared database server of the API's test files; see its head comment. */
const SHARED_DATABASE = 'api/test/world/cluster/shared.ts';
/** Timeout of a file with `--whole`, in seconds. */
const WHOLE_RUN_SECONDS = 5_400;
const RUNNER = fileURLToPath(new URL('../tests/run.ts', import.meta.url));

/** Crash matrices, chaos, builds, and stories on VMs beyond the main one of each capability. */
const LONG = /\.long\.test\.ts$/;
const TIERS: Readonly<Record<string, (file: string) => boolean>> = {
  fast: (file) => !LONG.test(file),
  long: (file) => LONG.test(file),
  all: () => true,
};

export interface TestSelection {
  /** Path fragments; a file runs if its path contains one. Empty: all files. */
  filters: readonly string[];
  /** Pattern of titles, as for Node's test runner. */
  name: string | undefined;
  /** Measures the cost of each file, and writes docs/measurements/test-suite.md. */
  profile: boolean;
  /** `fast`, `long` or `all`. Default: `fast`, with filters `all`. */
  tier: string | undefined;
  /** Runs the costly tests whole (os/test/long-run.ts). */
  whole: boolean;
}

export async function test(context: VerbContext, selection: TestSelection): Promise<number> {
  const { filters, tier = filters.length === 0 ? 'fast' : 'all' } = selection;
  const inTier = Object.hasOwn(TIERS, tier) ? TIERS[tier] : undefined;
  if (inTier === undefined)
    throw new OperatorFailure(`unknown tier '${tier}': use one of ${Object.keys(TIERS).join(', ')}`);
  const files = selectTests(findTests().filter(inTier), filters);
  if (files.length === 0) {
    const among = tier === 'all' ? '' : ` in tier '${tier}'`;
    const wanted = filters.map((filter) => `'${filter}'`).join(' or ');
    throw new OperatorFailure(`no test file's path${among} has ${wanted} in it`);
  }

  const ready = await setUp(context, { forTests: true });
  const flags = [
    ...(selection.name === undefined ? [] : [`--name=${selection.name}`]),
    ...(selection.profile ? ['--profile'] : []),
    ...(selection.whole ? [`--timeout=${WHOLE_RUN_SECONDS}`] : []),
    ...(files.some((file) => file.startsWith('api/')) ? [`--serve=${SHARED_DATABASE}`] : []),
  ];
  const minutes = expectedMinutes(files, await readCosts());
  context.progress.say(`Running ${files.length} test files, about ${minutes} min while nothing else runs.`);
  // All Node processes of the tests compile the same files.
  const environment = {
    ...context.environment,
    NODE_COMPILE_CACHE: join(context.config.cacheFolder, 'node-compile'),
    BERTH_TEST_LONG: selection.whole ? '1' : '0',
  };
  return runNode([RUNNER, ...flags, ...files], { ...context, environment }, ready);
}

/** Paths of all test files, relative to the checkout, sorted. */
export function findTests(): string[] {
  const found = PATTERNS.flatMap((pattern) =>
    globSync(pattern, { cwd: CHECKOUT, exclude: (name) => name.includes('node_modules') }),
  );
  return [...new Set(found)].sort();
}

export function selectTests(files: readonly string[], filters: readonly string[]): string[] {
  return files.filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)));
}
