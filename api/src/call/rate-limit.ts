// Limits the requests of each credential and of each org, and the failed authentications of each
// address. Buckets are in memory and per instance (spec: Limits). Authentication runs first: a
// counted request may still be refused.
import type { Plan } from '@berth/contract/billing/plans.ts';
import { addressBlock } from '../rules/access/address-block.ts';
import { describePlan } from '../rules/billing/plan-limits.ts';
import { CodedError } from '../rules/coded-error.ts';
import { FULL_AFTER_MS, refundToken, takeToken, type Bucket, type Taken } from '../rules/access/token-bucket.ts';
import type { Actor } from '../services/access/authentication.ts';

/** Limit of buckets. Beyond it the least recently used is dropped, as if it were full. */
const MAX_BUCKETS = 100_000;
/** Buckets a call may drop: more than it adds. */
const CLEARED_PER_CALL = 2;

interface BucketsOptions {
  perMinute: number;
  /** Monotonic clock, in milliseconds. */
  now?: () => number;
  maxBuckets?: number;
}

/** Token buckets by name. Full buckets are dropped. */
export class Buckets {
  readonly #perMinute: number;
  readonly #now: () => number;
  readonly #maxBuckets: number;
  /** Ordered by last use. */
  readonly #buckets = new Map<string, Bucket>();

  constructor({ perMinute, now = () => performance.now(), maxBuckets = MAX_BUCKETS }: BucketsOptions) {
    this.#perMinute = perMinute;
    this.#now = now;
    this.#maxBuckets = maxBuckets;
  }

  get size(): number {
    return this.#buckets.size;
  }

  take(name: string, perMinute = this.#perMinute): Taken {
    const now = this.#now();
    this.#forget(now);
    const taken = takeToken(this.#buckets.get(name), perMinute, now);
    this.#put(name, taken.bucket);
    return taken;
  }

  refund(name: string): void {
    this.#put(name, refundToken(this.#buckets.get(name), this.#perMinute, this.#now()));
  }

  #put(name: string, bucket: Bucket): void {
    this.#buckets.delete(name);
    this.#buckets.set(name, bucket);
  }

  #forget(now: number): void {
    let cleared = 0;
    for (const [name, bucket] of this.#buckets) {
      const full = now - bucket.atMs >= FULL_AFTER_MS;
      if (cleared === CLEARED_PER_CALL || !(full || this.#buckets.size >= this.#maxBuckets)) return;
      this.#buckets.delete(name);
      cleared += 1;
    }
  }
}

/** Limits the requests of each credential. */
export class RequestLimit {
  readonly #buckets: Buckets;
  readonly #perMinute: number;
  readonly #policy: string;

  constructor(options: BucketsOptions) {
    this.#buckets = new Buckets(options);
    this.#perMinute = options.perMinute;
    this.#policy = `"default";q=${options.perMinute};w=60`;
  }

  /**
   * Counts a request. Returns its rate limit headers (draft-ietf-httpapi-ratelimit-headers), and a
   * refusal when the limit is exceeded.
   */
  count(actor: Actor): { headers: Record<string, string>; refusal: CodedError | undefined } {
    const { allowed, left, fullInSeconds, nextInSeconds } = this.#buckets.take(credentialOf(actor));
    const headers = { 'ratelimit-policy': this.#policy, ratelimit: `"default";r=${left};t=${fullInSeconds}` };
    if (allowed) return { headers, refusal: undefined };
    const limit = `${this.#perMinute} per minute (BERTH_REQUESTS_PER_MINUTE)`;
    const message = `too many requests with this credential: the limit is ${limit}; retry in ${nextInSeconds} s`;
    return { headers, refusal: new CodedError('rate_limited', message, { retryAfterSeconds: nextInSeconds }) };
  }

  /** Gives a request back that another limit refused. */
  refund(actor: Actor): void {
    this.#buckets.refund(credentialOf(actor));
  }
}

/** Limits the requests of all credentials of an org together: an org makes keys at will. */
export class OrgRequestLimit {
  readonly #buckets: Buckets;
  readonly #perMinute: number;

  constructor(options: BucketsOptions) {
    this.#buckets = new Buckets(options);
    this.#perMinute = options.perMinute;
  }

  /**
   * Counts a request. Returns a refusal when the limit is exceeded.
   * @param plan of the org; null if none sets the limit, then the configuration applies
   */
  count(orgId: string, plan: Plan | null): CodedError | undefined {
    const planned = plan?.requestsPerMinute ?? null;
    const perMinute = planned ?? this.#perMinute;
    const { allowed, nextInSeconds } = this.#buckets.take(orgId, perMinute);
    if (allowed) return undefined;
    const source = plan === null || planned === null ? 'BERTH_ORG_REQUESTS_PER_MINUTE' : `of ${describePlan(plan)}`;
    const limit = `${perMinute} per minute for all its credentials (${source})`;
    const message = `too many requests of this org: the limit is ${limit}; retry in ${nextInSeconds} s`;
    return new CodedError('rate_limited', message, { retryAfterSeconds: nextInSeconds });
  }
}

/**
 * The sign-ins of a user count as one credential, and so do their agent tokens: a user makes both
 * at will.
 */
function credentialOf(actor: Actor): string {
  return actor.kind === 'api_key' ? actor.id : `${actor.kind}:${actor.userId}`;
}

/**
 * Limits requests without a valid credential per address, so that guessing costs a bounded number
 * of queries. A credential that was valid the last time is looked up without a try, so other
 * callers at the same address cannot lock its holder out.
 */
export class FailedAuthentications {
  readonly #tries: Buckets;
  /** Hashes of recently valid credentials, ordered by last use. */
  readonly #valid = new Set<string>();
  readonly #maxGood: number;

  constructor(options: BucketsOptions) {
    this.#tries = new Buckets(options);
    this.#maxGood = options.maxBuckets ?? MAX_BUCKETS;
  }

  /**
   * Counts a request whose credential is missing or malformed, apart from guesses: it costs no
   * query, and any web page can send it in its visitors' browsers. Throws `rate_limited` over the
   * limit.
   */
  count(address: string): void {
    this.#try(`malformed ${addressBlock(address)}`);
  }

  /** Holder of the places of this credential: the address, unless the credential was valid. */
  holder(address: string, { sha256 }: { sha256: Buffer }): string {
    const hash = sha256.toString('base64');
    return this.#valid.has(hash) ? hash : addressBlock(address);
  }

  /**
   * Looks a credential up. Throws `rate_limited` after too many invalid ones from the address.
   * Otherwise returns and throws as `lookUp` does.
   */
  async guard<T>(address: string, credential: { sha256: Buffer }, lookUp: () => Promise<T>): Promise<T> {
    const hash = credential.sha256.toString('base64');
    const wasGood = this.#valid.has(hash);
    // Take the try before the look-up, so that concurrent tries count like successive ones.
    if (!wasGood) this.#try(addressBlock(address));
    try {
      const found = await lookUp();
      if (!wasGood) this.#tries.refund(addressBlock(address));
      this.#cacheValid(hash);
      return found;
    } catch (error) {
      if (error instanceof CodedError && error.code === 'unauthenticated') this.#valid.delete(hash);
      // A fault of the service does not mean that the credential is invalid.
      else if (!wasGood) this.#tries.refund(addressBlock(address));
      throw error;
    }
  }

  #try(block: string): void {
    const { allowed, nextInSeconds } = this.#tries.take(block);
    if (allowed) return;
    const message = `too many requests without a valid credential from this address; retry in ${nextInSeconds} s`;
    throw new CodedError('rate_limited', message, { retryAfterSeconds: nextInSeconds });
  }

  #cacheValid(hash: string): void {
    this.#valid.delete(hash);
    this.#valid.add(hash);
    for (const oldest of this.#valid) {
      if (this.#valid.size <= this.#maxGood) return;
      this.#valid.delete(oldest);
    }
  }
}
