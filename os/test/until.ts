// Waits for a condition in a test, with a deadline and a description.
import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 50;

/** Resolves with the first value that is not null. */
export async function until<T>(
  what: string | (() => string),
  look: () => Promise<T | null>,
  deadlineMs = 240_000,
): Promise<T> {
  const deadline = Date.now() + deadlineMs;
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    if (Date.now() > deadline)
      throw new Error(`not within ${deadlineMs / 1_000} s: ${typeof what === 'string' ? what : what()}`);
    await delay(POLL_MS);
  }
}
