// Limits the anonymous visitors of each address: holders of public links, and callers without valid
// credentials. Members of the org are limited by its share of connections. Counts are per process.
import { Buckets } from '../call/rate-limit.ts';
import { addressBlock } from '../rules/access/address-block.ts';
import { tooManyConnections, tooManyRequests, type Refusal } from './refusals.ts';

interface VisitorLimits {
  /** Requests per minute of an address. */
  requestsPerMinute: number;
  /** Requests in flight, open streams and WebSockets of an address. */
  connections: number;
}

export class Visitors {
  readonly #limits: VisitorLimits;
  readonly #requests: Buckets;
  readonly #open = new Map<string, number>();

  /** `now` returns milliseconds of a monotonic clock. */
  constructor(limits: VisitorLimits, now?: () => number) {
    this.#limits = limits;
    this.#requests = new Buckets({ perMinute: limits.requestsPerMinute, ...(now === undefined ? {} : { now }) });
  }

  /** Counts a request until `leave` is called, once. */
  enter(address: string): { leave: () => void } | { refusal: Refusal } {
    const { connections, requestsPerMinute } = this.#limits;
    const block = addressBlock(address);
    const open = this.#open.get(block) ?? 0;
    if (open >= connections) {
      const limit = `${connections} for an address without a member (BERTH_VISITOR_CONNECTIONS)`;
      return { refusal: tooManyConnections(`this API replica has reached its limit of ${limit}`) };
    }
    const { allowed, nextInSeconds } = this.#requests.take(block);
    if (!allowed) {
      const limit = `${requestsPerMinute} per minute (BERTH_VISITOR_REQUESTS_PER_MINUTE)`;
      return { refusal: tooManyRequests(limit, nextInSeconds) };
    }
    this.#open.set(block, open + 1);
    return { leave: () => this.#leave(block) };
  }

  #leave(block: string): void {
    const open = (this.#open.get(block) ?? 0) - 1;
    if (open <= 0) this.#open.delete(block);
    else this.#open.set(block, open);
  }
}
