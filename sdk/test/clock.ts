// Pauses of the SDK that end at once, and tell how long they would have taken. Its deadlines, which
// are longer, stay, and so does whatever else waits.
import type { TestContext } from 'node:test';

const LONGEST_PAUSE_MS = 20_000;

/** From now on pauses of the test are noted rather than waited for. */
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
