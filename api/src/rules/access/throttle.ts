// Rate limits on attempts: token buckets, refilled continuously, per account, address and user.
// Pure; store/access/throttle.ts holds the rows.
import { SIGN_UPS_PER_HOUR } from '@berth/contract/route/limits.ts';
import { getDomain } from 'tldts-icann';
import { addressBlock } from './address-block.ts';

/** Capacity of a bucket, and the time in which it refills completely. */
export interface Bucket {
  tries: number;
  seconds: number;
}

type ThrottleScope = 'account' | 'address' | 'domain' | 'user' | 'login';
/** Key of a bucket. Only the functions below make keys, so that each subject has exactly one. */
export type ThrottleKey = `${ThrottleScope}:${string}`;

/** New accounts per hour of a network address, and of a registrable mail domain. */
export interface SignUpTries {
  address: number;
  domain: number;
}

const QUARTER_HOUR = 900;
const HOUR = 3_600;

/** Buckets per kind of attempt. An attempt is counted in each scope of its kind. */
export const THROTTLES = {
  'sign-in': { account: { tries: 10, seconds: QUARTER_HOUR }, address: { tries: 50, seconds: QUARTER_HOUR } },
  passkey: { address: { tries: 50, seconds: QUARTER_HOUR } },
  /** A code of an authenticator app: three of a million are valid at a time. */
  'second-factor': { user: { tries: 10, seconds: HOUR }, address: { tries: 50, seconds: QUARTER_HOUR } },
  /**
   * A signed-in person proves their identity again, by password or code. Apart from sign-ins, as a
   * stranger who guesses passwords must not stop confirmations, nor a thief of a cookie sign-ins.
   */
  confirm: { login: { tries: 10, seconds: HOUR }, address: { tries: 50, seconds: QUARTER_HOUR } },
  'reset-password': { account: { tries: 3, seconds: HOUR }, address: { tries: 20, seconds: HOUR } },
  'verify-email': { account: { tries: 3, seconds: HOUR }, address: { tries: 20, seconds: HOUR } },
  /** The operator may set other numbers of tries. `domain`: of the new account's mail address. */
  'sign-up': {
    address: { tries: SIGN_UPS_PER_HOUR.address, seconds: HOUR },
    domain: { tries: SIGN_UPS_PER_HOUR.domain, seconds: HOUR },
  },
  /** A person enters a device code. */
  'device-code': { user: { tries: 20, seconds: QUARTER_HOUR }, address: { tries: 20, seconds: QUARTER_HOUR } },
  /** A device requests a code, which inserts a row. */
  'device-request': { address: { tries: 30, seconds: QUARTER_HOUR } },
  /**
   * A return from the OIDC provider, which triggers a request to the provider. A whole office may
   * share one address.
   */
  'oidc-return': { address: { tries: 200, seconds: QUARTER_HOUR } },
  /** A team link's page redirects a member to the preview, which stores the grant's hash. */
  'preview-grant': { user: { tries: 300, seconds: QUARTER_HOUR } },
  /** A client exchanges its sign-in for another session token. */
  refresh: { login: { tries: 300, seconds: QUARTER_HOUR } },
} as const satisfies { [kind: string]: { [scope in ThrottleScope]?: Bucket } };
export type ThrottleKind = keyof typeof THROTTLES;

/** Any bucket unused for this long is full, so its row can be deleted. */
export const LONGEST_REFILL_SECONDS = Math.max(
  ...Object.values(THROTTLES).flatMap((scopes) => Object.values<Bucket>(scopes).map(({ seconds }) => seconds)),
);

/** Key of the account with an email address, whether or not the account exists. */
export function accountKey(email: string): ThrottleKey {
  return `account:${email.trim().toLowerCase()}`;
}

/** Key of a caller's address. */
export function addressKey(address: string): ThrottleKey {
  return `address:${addressBlock(address)}`;
}

/**
 * Key of the registrable domain of an email address, since its owner has any number of subdomains.
 * Suffixes of registries alone count: a service that gives subdomains away is one domain.
 */
export function domainKey(email: string): ThrottleKey {
  const host = email
    .slice(email.lastIndexOf('@') + 1)
    .trim()
    .toLowerCase();
  return `domain:${getDomain(host) ?? host}`;
}

export function userKey(userId: string): ThrottleKey {
  return `user:${userId}`;
}

export function loginKey(loginId: string): ThrottleKey {
  return `login:${loginId}`;
}

/**
 * The bucket that limits attempts of a kind under a key; undefined if the kind has none for that
 * scope.
 */
export function bucketOf(
  kind: ThrottleKind,
  key: ThrottleKey,
  signUps: SignUpTries = SIGN_UPS_PER_HOUR,
): Bucket | undefined {
  const scope = key.slice(0, key.indexOf(':')) as ThrottleScope;
  const scopes: { [scope in ThrottleScope]?: Bucket } = THROTTLES[kind];
  const bucket = scopes[scope];
  if (bucket === undefined || kind !== 'sign-up' || !isSignUpScope(scope)) return bucket;
  return { ...bucket, tries: signUps[scope] };
}

/** Text that names the limit of a bucket, and the variable that raises it, if there is one. */
export function limitText(kind: ThrottleKind, key: ThrottleKey, { tries, seconds }: Bucket): string {
  const scope = key.slice(0, key.indexOf(':')) as ThrottleScope;
  const period = seconds === HOUR ? 'per hour' : `in ${seconds / 60} minutes`;
  const limit = `${SCOPE_TEXTS[scope]}: the limit is ${tries} ${period}`;
  if (kind !== 'sign-up' || !isSignUpScope(scope)) return `too many attempts ${limit}`;
  return `too many new accounts ${limit} (${SIGN_UP_VARIABLES[scope]})`;
}

const SCOPE_TEXTS: { readonly [scope in ThrottleScope]: string } = {
  account: 'for this account',
  address: 'from this network address',
  domain: 'with this mail domain',
  user: 'by this user',
  login: 'in this sign-in',
};

const SIGN_UP_VARIABLES = { address: 'BERTH_SIGN_UPS_PER_ADDRESS', domain: 'BERTH_SIGN_UPS_PER_DOMAIN' } as const;

function isSignUpScope(scope: ThrottleScope): scope is keyof SignUpTries {
  return scope in SIGN_UP_VARIABLES;
}

/** Tokens in a bucket that held `tokens` and was refilled for `elapsedSeconds`. */
export function refilled(tokens: number, elapsedSeconds: number, bucket: Bucket): number {
  return Math.min(bucket.tries, tokens + (Math.max(0, elapsedSeconds) * bucket.tries) / bucket.seconds);
}

/** Whole seconds until a bucket with `tokens` can grant an attempt; 0 if it can now. */
export function secondsUntilTry(tokens: number, bucket: Bucket): number {
  return tokens >= 1 ? 0 : Math.ceil(((1 - tokens) * bucket.seconds) / bucket.tries);
}
