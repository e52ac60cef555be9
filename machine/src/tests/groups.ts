// Groups short test files: files of one group share a process, and so the import of the modules
// that they have in common, which takes longer than most of their tests.
import type { Cost } from './costs.ts';
import type { Group } from './schedule.ts';

/** Longest file that shares a process, in seconds. */
const SHORT_SECONDS = 15;
/** Limits of a group: its failure repeats each of its files. */
const LIMITS = { files: 15, seconds: 60 };

/** @returns groups in no particular order; an unmeasured file is alone */
export function groupFiles(files: readonly string[], costs: ReadonlyMap<string, Cost>): Group[] {
  const groups: Group[] = [];
  const open = new Map<string, { group: [string, ...string[]]; seconds: number }>();
  for (const file of files) {
    const seconds = costs.get(file)?.seconds ?? Infinity;
    const workspace = file.split('/', 1)[0] ?? '';
    const last = open.get(workspace);
    const fits = last !== undefined && last.group.length < LIMITS.files && last.seconds + seconds <= LIMITS.seconds;
    if (fits && seconds <= SHORT_SECONDS) {
      last.group.push(file);
      last.seconds += seconds;
      continue;
    }
    const group: [string, ...string[]] = [file];
    groups.push(group);
    if (seconds <= SHORT_SECONDS) open.set(workspace, { group, seconds });
  }
  return groups;
}
