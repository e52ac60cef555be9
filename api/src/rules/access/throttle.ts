// How often a thing may be tried: token buckets, refilled continuously, for each account, address
// and user. Pure; the rows are store/throttle.ts.
import { addressBlock } from './address-block.ts';

/** As many tries at once, and as many again in the time. */
export interface Bucket {
  tries: number;
  seconds: number;
}

export type ThrottleScope = 'account' | 'address' | 'user' | 'login';
/** What is counted: made by the functions below, so that one thing has one key. */
export type ThrottleKey = `${ThrottleScope}:${string}`;

const QUARTER_HOUR = 900;
const HOUR = 3_600;

/** A try of a kind is counted for each of its scopes. */
export const THROTTLES = {
  'sign-in': { account: { tries: 10, seconds: QUARTER_HOUR }, address: { tries: 50, seconds: QUARTER_HOUR } },
  'reset-password': { account: { tries: 3, seconds: HOUR }, address: { tries: 20, seconds: HOUR } },
  'verify-email': { account: { tries: 3, seconds: HOUR }, address: { tries: 20, seconds: HOUR } },
  'sign-up': { address: { tries: 10, seconds: HOUR } },
  /** A person types the code of a device. */
  'device-code': { user: { tries: 20, seconds: QUARTER_HOUR }, address: { tries: 20, seconds: QUARTER_HOUR } },
  /** A device asks for a code, which makes a row. */
  'device-request': { address: { tries: 30, seconds: QUARTER_HOUR } },
  /**
   * Somebody comes back from the OIDC provider, which is asked whether that is true. Whole offices
   * come from one address.
   */
  'oidc-return': { address: { tries: 200, seconds: QUARTER_HOUR } },
  /** A client that has a login asks for another session token. */
  refresh: { login: { tries: 300, seconds: QUARTER_HOUR } },
} as const satisfies { [kind: string]: { [scope in ThrottleScope]?: Bucket } };
export type ThrottleKind = keyof typeof THROTTLES;

/** A bucket that nobody touched for this long is full, whatever it counts: its row can go. */
export const LONGEST_REFILL_SECONDS = Math.max(
  ...Object.values(THROTTLES).flatMap((scopes) => Object.values<Bucket>(scopes).map(({ seconds }) => seconds)),
);

/** The key of the account with an email address, whether there is one or not. */
export function accountKey(email: string): ThrottleKey {
  return `account:${email.trim().toLowerCase()}`;
}

/** The key of a caller's address. */
export function addressKey(address: string): ThrottleKey {
  return `address:${addressBlock(address)}`;
}

export function userKey(userId: string): ThrottleKey {
  return `user:${userId}`;
}

export function loginKey(loginId: string): ThrottleKey {
  return `login:${loginId}`;
}

/** The bucket that counts a key's tries of a kind; undefined when the kind is not counted so. */
export function bucketOf(kind: ThrottleKind, key: ThrottleKey): Bucket | undefined {
  const scopes: { [scope in ThrottleScope]?: Bucket } = THROTTLES[kind];
  return scopes[key.slice(0, key.indexOf(':')) as ThrottleScope];
}

/** What a bucket holds some time after it held `tokens`. */
export function refilled(tokens: number, elapsedSeconds: number, bucket: Bucket): number {
  return Math.min(bucket.tries, tokens + (Math.max(0, elapsedSeconds) * bucket.tries) / bucket.seconds);
}

/** How long until a bucket that holds `tokens` has one to give, in whole seconds; 0 when it has. */
export function secondsUntilTry(tokens: number, bucket: Bucket): number {
  return tokens >= 1 ? 0 : Math.ceil(((1 - tokens) * bucket.seconds) / bucket.tries);
}
