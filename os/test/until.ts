// Waits for a condition in a test, with a deadline and a description; deadlines of tests.
import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 20;
const IDLE_MS = 240_000;
/** Against a test alone on an idle computer; measured by `berth test`. */
const SLOWNESS = Math.max(1, Number(process.env['BERTH_TEST_SLOWNESS'] ?? 1));
/** A longer deadline would hide behind the timeout of the file. */
const MOST_MS = 300_000;

/** @param idleMs the deadline on an idle computer; never shortened */
export function deadlineOf(idleMs: number): number {
  return Math.max(idleMs, Math.min(idleMs * SLOWNESS, MOST_MS));
}

/** Resolves with the first value that is not null. @param idleMs deadline on an idle computer */
export async function until<T>(
  what: string | (() => string),
  look: () => Promise<T | null>,
  idleMs = IDLE_MS,
): Promise<T> {
  const deadlineMs = deadlineOf(idleMs);
  const deadline = Date.now() + deadlineMs;
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    if (Date.now() > deadline)
      throw new Error(`not within ${deadlineMs / 1_000} s: ${typeof what === 'string' ? what : what()}`);
    await delay(POLL_MS);
  }
}

/** Resolves once `done` is true. @param idleMs deadline on an idle computer */
export async function untilTrue(what: string, done: () => boolean | Promise<boolean>, idleMs = IDLE_MS): Promise<void> {
  await until(what, async () => ((await done()) ? true : null), idleMs);
}
