// A reporter of Node's test runner beside the one that prints the tests: a line for each file that has ended, with its place among all, its tests, and how long it took with
// the start of its process.
import { relative } from 'node:path';
import type { EventData } from 'node:test';

interface Reported {
  type: string;
  data: unknown;
}

/** How many files the run has, as `berth test` says. */
const FILES = process.env['BERTH_TEST_FILES'] ?? '?';

// oxlint-disable-next-line import/no-default-export -- a reporter is the default export of its file
export default async function* testProgress(events: AsyncIterable<Reported>): AsyncGenerator<string> {
  /** The last summary of a file comes before the file itself is told as a completed test. */
  const summaries = new Map<string, EventData.TestSummary>();
  let ended = 0;
  for await (const { type, data } of events) {
    if (type === 'test:summary') {
      const summary = data as EventData.TestSummary;
      if (summary.file !== undefined) summaries.set(summary.file, summary);
    } else if (type === 'test:complete') {
      const { name, file, details } = data as EventData.TestComplete;
      if (file === undefined || relative(name, file) !== '') continue;
      ended += 1;
      const counts = summaries.get(file)?.counts;
      const result = counts === undefined ? 'no summary' : `${counts.passed} of ${counts.tests} passed`;
      yield `» ${ended}/${FILES} ${name}: ${result}, ${(details.duration_ms / 1000).toFixed(1)} s\n`;
    }
  }
}
