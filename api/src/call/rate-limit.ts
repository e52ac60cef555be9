// How often one credential may call this instance, and how often an address may fail to say who it
// is. In memory: every instance counts for itself (spec: Limits). Who calls is found out elsewhere,
// and before: what is counted here may still be refused.
import { addressBlock } from '../rules/access/address-block.ts';
import { CodedError } from '../rules/coded-error.ts';
import { FULL_AFTER_MS, giveTokenBack, takeToken, type Bucket, type Taken } from '../rules/access/token-bucket.ts';
import type { Actor } from '../services/access/authentication.ts';

/**
 * What is counted at once at most; beyond it what was used longest ago is forgotten, which is as if
 * its bucket were full.
 */
const MAX_BUCKETS = 100_000;
/** How many forgotten ones a call clears away: more than it adds. */
const CLEARED_A_CALL = 2;

interface BucketsOptions {
  perMinute: number;
  /** Milliseconds of a clock that never goes back. */
  now?: () => number;
  maxBuckets?: number;
}

/** Token buckets by name. Those that are full again are forgotten. */
export class Buckets {
  readonly #perMinute: number;
  readonly #now: () => number;
  readonly #maxBuckets: number;
  /** In the order of their last use. */
  readonly #buckets = new Map<string, Bucket>();

  constructor({ perMinute, now = () => performance.now(), maxBuckets = MAX_BUCKETS }: BucketsOptions) {
    this.#perMinute = perMinute;
    this.#now = now;
    this.#maxBuckets = maxBuckets;
  }

  get size(): number {
    return this.#buckets.size;
  }

  take(name: string): Taken {
    const now = this.#now();
    this.#forget(now);
    const taken = takeToken(this.#buckets.get(name), this.#perMinute, now);
    this.#put(name, taken.bucket);
    return taken;
  }

  giveBack(name: string): void {
    this.#put(name, giveTokenBack(this.#buckets.get(name), this.#perMinute, this.#now()));
  }

  #put(name: string, bucket: Bucket): void {
    this.#buckets.delete(name);
    this.#buckets.set(name, bucket);
  }

  #forget(now: number): void {
    let cleared = 0;
    for (const [name, bucket] of this.#buckets) {
      const full = now - bucket.atMs >= FULL_AFTER_MS;
      if (cleared === CLEARED_A_CALL || !(full || this.#buckets.size >= this.#maxBuckets)) return;
      this.#buckets.delete(name);
      cleared += 1;
    }
  }
}

/** Requests of one credential. */
export class RequestLimit {
  readonly #buckets: Buckets;
  readonly #policy: string;

  constructor(options: BucketsOptions) {
    this.#buckets = new Buckets(options);
    this.#policy = `"default";q=${options.perMinute};w=60`;
  }

  /**
   * Counts a request. Gives the headers of its answer (draft-ietf-httpapi-ratelimit-headers), and
   * the refusal when it is one too many.
   */
  count(actor: Actor): { headers: Record<string, string>; refusal: CodedError | undefined } {
    const { allowed, left, fullInSeconds, nextInSeconds } = this.#buckets.take(credentialOf(actor));
    const headers = { 'ratelimit-policy': this.#policy, ratelimit: `"default";r=${left};t=${fullInSeconds}` };
    if (allowed) return { headers, refusal: undefined };
    const message = `too many requests with this credential; the next is possible in ${nextInSeconds} s`;
    return { headers, refusal: new CodedError('rate_limited', message, { retryAfterSeconds: nextInSeconds }) };
  }
}

/** Of a session the login: a token that was refreshed is no new credential. */
function credentialOf(actor: Actor): string {
  return actor.kind === 'session' ? actor.loginId : actor.id;
}

/**
 * Requests whose caller could not be found out, by address, so that guessing costs no unbounded
 * number of queries. Who called from an address before goes on when others use its tries up: a
 * credential that was good the last time needs no try. (It is looked up as ever.)
 */
export class FailedAuthentications {
  readonly #tries: Buckets;
  /** Hashes of such credentials, in the order of their last use. */
  readonly #good = new Set<string>();
  readonly #maxGood: number;

  constructor(options: BucketsOptions) {
    this.#tries = new Buckets(options);
    this.#maxGood = options.maxBuckets ?? MAX_BUCKETS;
  }

  /**
   * Counts a request whose credential cannot be one. Throws `rate_limited` when it is one too many.
   */
  count(address: string): void {
    this.#try(addressBlock(address));
  }

  /**
   * Looks a credential up, unless too many of the address were none; then throws `rate_limited`.
   * Otherwise gives and throws what `lookUp` does.
   */
  async guard<T>(address: string, credential: { sha256: Buffer }, lookUp: () => Promise<T>): Promise<T> {
    const hash = credential.sha256.toString('base64');
    const wasGood = this.#good.has(hash);
    // A try is taken before the look, so that many at once are no more than many in turn.
    if (!wasGood) this.#try(addressBlock(address));
    try {
      const found = await lookUp();
      if (!wasGood) this.#tries.giveBack(addressBlock(address));
      this.#remember(hash);
      return found;
    } catch (error) {
      if (error instanceof CodedError && error.code === 'unauthenticated') this.#good.delete(hash);
      // A fault of ours says nothing of the credential.
      else if (!wasGood) this.#tries.giveBack(addressBlock(address));
      throw error;
    }
  }

  #try(block: string): void {
    const { allowed, nextInSeconds } = this.#tries.take(block);
    if (allowed) return;
    const message = `too many requests without a valid credential from this address; the next is possible in ${nextInSeconds} s`;
    throw new CodedError('rate_limited', message, { retryAfterSeconds: nextInSeconds });
  }

  #remember(hash: string): void {
    this.#good.delete(hash);
    this.#good.add(hash);
    for (const oldest of this.#good) {
      if (this.#good.size <= this.#maxGood) return;
      this.#good.delete(oldest);
    }
  }
}
