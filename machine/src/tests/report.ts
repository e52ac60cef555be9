// Summary lines of a test run.
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MOST_UNSTABLE, type Unstable } from './confirm.ts';
import type { FileResult } from './file-results.ts';

const SLOWEST = 10;

export function describeSlowest(results: readonly Pick<FileResult, 'file' | 'cost'>[]): string {
  const slowest = results.toSorted((a, b) => b.cost.seconds - a.cost.seconds).slice(0, SLOWEST);
  const lines = slowest.map(({ file, cost }) => `  ${cost.seconds.toFixed(1).padStart(7)} s  ${file}\n`);
  return `\nSlowest files:\n${lines.join('')}`;
}

/** Unstable files with their first errors, also written to a file. Empty without any. */
export async function describeUnstable(unstable: readonly Unstable[], files: number): Promise<string> {
  if (unstable.length === 0) return '';
  const errors = unstable.map(({ file, error }) => `${file}\n${error.replaceAll(/^/gm, '  ')}\n`).join('\n');
  const path = join(await mkdtemp(join(tmpdir(), 'berth-unstable-')), 'unstable.txt');
  await writeFile(path, errors);
  const count = `${unstable.length} of ${files} files failed once and passed alone, limit ${MOST_UNSTABLE}`;
  return `\nUNSTABLE: ${count}; list in ${path}\n${errors}\n`;
}

/** Counts of all files, in the form of Node's runner. */
export function describeCounts(results: readonly Pick<FileResult, 'counts'>[], durationMs: number): string {
  const total = (key: keyof FileResult['counts']): number => results.reduce((sum, { counts }) => sum + counts[key], 0);
  const [tests, pass, cancelled] = [total('tests'), total('passed'), total('cancelled')];
  const [skipped, todo] = [total('skipped'), total('todo')];
  const fail = tests - pass - cancelled - skipped - todo;
  const counts = { tests, suites: total('suites'), pass, fail, cancelled, skipped, todo, duration_ms: durationMs };
  return Object.entries(counts)
    .map(([name, count]) => `ℹ ${name} ${count}\n`)
    .join('');
}
