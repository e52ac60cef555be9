// Waits for a condition in a test, with a deadline and a description.
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { deadlineOf } from '../../../os/test/until.ts';

const DEADLINE_MS = 180_000;
const POLL_INTERVAL_MS = 10;

/** Resolves once `done` is true; fails with `what` at the deadline. */
export async function untilTrue(
  what: string,
  done: () => boolean | Promise<boolean>,
  deadlineMs = DEADLINE_MS,
): Promise<void> {
  const deadline = Date.now() + deadlineOf(deadlineMs);
  while (!(await done())) {
    assert.ok(Date.now() < deadline, `in vain: ${what}`);
    await delay(POLL_INTERVAL_MS);
  }
}
