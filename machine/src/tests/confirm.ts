// Confirms failures of test files: runs each failed file again, alone. A loaded machine can fail a
// file that passes otherwise; such a file is reported as unstable.
import { inspect } from 'node:util';
import type { FileResult } from './file-results.ts';

/** Limit of unstable files in a passing run. */
export const MOST_UNSTABLE = 5;
/** Runs of a failed file alone. */
const ATTEMPTS = 2;
/** Failed files from which a run is broken: none is confirmed. */
const BROKEN = 20;

export interface Unstable {
  file: string;
  /** First error of the failed run, with its stack. */
  error: string;
}

interface Confirmed {
  /** One result per file: the passing run of an unstable file, otherwise the first run. */
  results: FileResult[];
  unstable: Unstable[];
}

/** @param runAlone runs a file while no other runs */
export async function confirmFailures(
  first: readonly FileResult[],
  runAlone: (file: string) => Promise<FileResult>,
): Promise<Confirmed> {
  const failures = first.filter(({ success }) => !success).length;
  if (failures >= BROKEN) return { results: [...first], unstable: [] };
  const results: FileResult[] = [];
  const unstable: Unstable[] = [];
  for (const result of first) {
    const passed = result.success ? undefined : await firstPass(result.file, runAlone);
    if (passed !== undefined) unstable.push({ file: result.file, error: firstErrorOf(result) });
    results.push(passed ?? result);
  }
  return { results, unstable };
}

async function firstPass(
  file: string,
  runAlone: (file: string) => Promise<FileResult>,
): Promise<FileResult | undefined> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const result = await runAlone(file);
    if (result.success) return result;
  }
  return undefined;
}

function firstErrorOf({ events }: FileResult): string {
  const failure = events.find((event) => event.type === 'test:fail');
  if (failure === undefined) return 'no test failed, but the file did';
  const { name, details } = failure.data;
  return `${name}\n${inspect(details.error.cause ?? details.error)}`;
}
