// Results of test files that shared a process: the events below the suite of each file, as if the
// file had run alone.
import type { EventData } from 'node:test';
import type { TestEvent } from 'node:test/reporters';
import type { Cost } from './costs.ts';

export interface FileResult {
  file: string;
  cost: Cost;
  success: boolean;
  counts: EventData.TestSummary['counts'];
  /** Events for a reporter, in order, without the final counts. */
  events: TestEvent[];
}

type Ended = { type: 'test:pass'; data: EventData.TestPass } | { type: 'test:fail'; data: EventData.TestFail };

/** Failures that Node's runner counts as cancelled. */
const CANCELLED = ['cancelledByParent', 'testAborted', 'testTimeoutFailure'];

/**
 * @param files in the order of their suites
 * @param success of the process; without it no file passes unless another one failed
 */
export function resultsOf(files: readonly string[], events: readonly TestEvent[], success: boolean): FileResult[] {
  const results = new Map<string, FileResult>();
  let own: TestEvent[] = [];
  let rest: TestEvent[] = [];
  for (const event of events) {
    const { nesting, name } = event.data as { nesting?: number; name?: string };
    if (nesting !== 0 || name === undefined || !files.includes(name)) {
      // One level higher, as if the file had no suite around it.
      // One level higher, as if the file had no suite around it.
      if (nesting !== undefined && nesting > 0) event.data = { ...event.data, nesting: nesting - 1 } as never;
      own.push(event);
      continue;
    }
    if (event.type === 'test:start') [rest, own] = [[...rest, ...own], []];
    if (event.type !== 'test:pass' && event.type !== 'test:fail') continue;
    results.set(name, resultOf(name, own, event));
    own = [];
  }
  rest.push(...own);
  const failed = [...results.values()].some((result) => !result.success);
  return files.map((file) => {
    const result = results.get(file);
    if (result !== undefined && (success || failed)) return result;
    // The process ended before the file, or with an error that belongs to no file.
    const counts = { tests: 1, suites: 0, passed: 0, cancelled: 0, skipped: 0, todo: 0, topLevel: 1 };
    return { file, cost: result?.cost ?? { seconds: 0, cpuSeconds: null }, success: false, counts, events: rest };
  });
}

function resultOf(file: string, events: readonly TestEvent[], suite: Ended): FileResult {
  const counts = { tests: 0, suites: 0, passed: 0, cancelled: 0, skipped: 0, todo: 0, topLevel: 0 };
  const failureType = suite.type === 'test:fail' ? failureTypeOf(suite) : undefined;
  // A failure of the suite itself: of its import or a hook.
  const all = failureType === undefined || failureType === 'subtestsFailed' ? events : [...events, suite];
  for (const event of all) {
    if (event.type !== 'test:pass' && event.type !== 'test:fail') continue;
    if (event.data.nesting === 0) counts.topLevel += 1;
    if (event !== suite && event.data.details.type === 'suite') {
      counts.suites += 1;
    } else {
      counts.tests += 1;
      const outcome = outcomeOf(event);
      if (outcome !== 'failed') counts[outcome] += 1;
    }
  }
  const cost = { seconds: suite.data.details.duration_ms / 1_000, cpuSeconds: null };
  return { file, cost, success: suite.type === 'test:pass', counts, events: [...all] };
}

function outcomeOf(event: Ended): 'passed' | 'failed' | 'cancelled' | 'skipped' | 'todo' {
  if (event.data.skip !== undefined) return 'skipped';
  if (event.data.todo !== undefined) return 'todo';
  if (event.type === 'test:pass') return 'passed';
  return CANCELLED.includes(failureTypeOf(event) ?? '') ? 'cancelled' : 'failed';
}

const failureTypeOf = ({ data }: Ended & { type: 'test:fail' }): string | undefined =>
  (data.details.error as { failureType?: string }).failureType;
