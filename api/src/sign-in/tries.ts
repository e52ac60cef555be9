// Counts tries, and refuses those that are too many. How many there may be is said in
// rules/throttle.ts.
import { createHmac } from 'node:crypto';
import { bucketOf, refilled, secondsUntilTry, type ThrottleKey, type ThrottleKind } from '../rules/access/throttle.ts';
import { SignInError } from '../services/people/sign-in-port.ts';
import type { Database } from '../store/database/schema.ts';
import { takeTry } from '../store/access/throttle.ts';

/**
 * Counts a try of a kind for each of the keys. Throws `too_many_attempts`.
 *
 * @param hashKey keys are kept as their HMAC with it: there are few enough addresses to try them
 * all on a plain hash
 */
export async function countTries(
  db: Database,
  hashKey: Buffer,
  kind: ThrottleKind,
  keys: readonly ThrottleKey[],
): Promise<void> {
  // Addresses first: an address that may not try any more takes no try from the account that it
  // aims at.
  const inOrder = keys.toSorted((a, b) => Number(b.startsWith('address:')) - Number(a.startsWith('address:')));
  for (const key of inOrder) {
    const bucket = bucketOf(kind, key);
    if (bucket === undefined) throw new Error(`tries of the kind ${kind} are not counted by ${key.split(':', 1)[0]}`);
    const empty = await takeTry(db, createHmac('sha256', hashKey).update(`${kind} ${key}`).digest(), bucket);
    if (empty === null) continue;
    const retryAfterSeconds = Math.max(
      1,
      secondsUntilTry(refilled(empty.tokens, empty.elapsedSeconds, bucket), bucket),
    );
    throw new SignInError('too_many_attempts', `too many attempts; try again in ${inWords(retryAfterSeconds)}`, {
      retryAfterSeconds,
    });
  }
}

function inWords(seconds: number): string {
  if (seconds === 1) return '1 second';
  return seconds < 90 ? `${seconds} seconds` : `${Math.ceil(seconds / 60)} minutes`;
}
