// A reporter of Node's test runner beside the one that prints the tests: a line for each file that
// has ended, with its place among all and how long it took with the start of its process.
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
  let ended = 0;
  for await (const { type, data } of events) {
    if (type !== 'test:complete') continue;
    const { name, file, details } = data as EventData.TestComplete;
    // The file itself, not one of its tests.
    if (file === undefined || relative(name, file) !== '') continue;
    ended += 1;
    yield `» ${ended}/${FILES} ${name}: ${details.passed ? 'ok' : 'FAILED'}, ${(details.duration_ms / 1000).toFixed(1)} s\n`;
  }
}
