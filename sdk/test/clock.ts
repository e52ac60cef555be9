// Skips and records the short pauses of the SDK. Longer timers, such as deadlines, stay.
import type { TestContext } from 'node:test';

const LONGEST_PAUSE_MS = 20_000;

/** Records pauses of the test instead of waiting. */
export function notePauses(t: TestContext): number[] {
  const pauses: number[] = [];
  const real = globalThis.setTimeout;
  t.mock.method(globalThis, 'setTimeout', (run: (...given: unknown[]) => void, ms = 0, ...given: unknown[]) => {
    const ofSdk = new Error('who waits').stack?.includes('sdk/src/transport/time.ts') === true;
    if (!ofSdk || ms > LONGEST_PAUSE_MS) return real(run, ms, ...given);
    pauses.push(ms);
    return real(run, 0, ...given);
  });
  return pauses;
}
