// Counts attempts and refuses excess ones. rules/access/throttle.ts defines the limits.
import { createHmac } from 'node:crypto';
import {
  bucketOf,
  limitText,
  refilled,
  secondsUntilTry,
  type SignUpTries,
  type ThrottleKey,
  type ThrottleKind,
} from '../rules/access/throttle.ts';
import { SignInError } from '../services/people/sign-in-port.ts';
import type { Database } from '../store/database/schema.ts';
import { takeAttempt } from '../store/access/throttle.ts';

/**
 * Counts an attempt of a kind for each key. Throws `too_many_attempts`.
 * @param hashKey HMAC key for the stored keys: there are few enough addresses to try them all on a
 * plain hash
 */
export async function countAttempts(
  db: Database,
  hashKey: Buffer,
  kind: ThrottleKind,
  keys: readonly ThrottleKey[],
  signUps: SignUpTries,
): Promise<void> {
  // Addresses first: a blocked address takes no attempt from its target account.
  const inOrder = keys.toSorted((a, b) => Number(b.startsWith('address:')) - Number(a.startsWith('address:')));
  for (const key of inOrder) {
    const bucket = bucketOf(kind, key, signUps);
    if (bucket === undefined)
      throw new Error(`attempts of the kind ${kind} are not counted by ${key.split(':', 1)[0]}`);
    const empty = await takeAttempt(db, createHmac('sha256', hashKey).update(`${kind} ${key}`).digest(), bucket);
    if (empty === null) continue;
    const retryAfterSeconds = Math.max(
      1,
      secondsUntilTry(refilled(empty.tokens, empty.elapsedSeconds, bucket), bucket),
    );
    const limit = limitText(kind, key, bucket);
    throw new SignInError('too_many_attempts', `${limit}; try again in ${inWords(retryAfterSeconds)}`, {
      retryAfterSeconds,
    });
  }
}

function inWords(seconds: number): string {
  if (seconds === 1) return '1 second';
  return seconds < 90 ? `${seconds} seconds` : `${Math.ceil(seconds / 60)} minutes`;
}
