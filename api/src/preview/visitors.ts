// Limits the anonymous visitors of each address: holders of public links, and callers without valid
// credentials. An address may belong to an office, and a page of one org can open anything in its
// visitors' browsers: each org has its share. Members of the org are limited by its share of
// connections. Counts are per process.
import { SharedCapacity, type Release } from '@berth/protocol/shared-capacity.ts';
import { Buckets } from '../call/rate-limit.ts';
import { addressBlock } from '../rules/access/address-block.ts';
import { tooManyConnections, tooManyRequests, type Refusal } from './refusals.ts';

interface VisitorLimits {
  /** Requests per minute of an address, for each org. */
  requestsPerMinute: number;
  /**
   * Requests in flight, open streams and WebSockets of an address. An org takes at most half of
   * those that others leave.
   */
  connections: number;
}

export class Visitors {
  readonly #limits: VisitorLimits;
  readonly #requests: Buckets;
  readonly #open = new Map<string, SharedCapacity>();

  /** `now` returns milliseconds of a monotonic clock. */
  constructor(limits: VisitorLimits, now?: () => number) {
    this.#limits = limits;
    this.#requests = new Buckets({ perMinute: limits.requestsPerMinute, ...(now === undefined ? {} : { now }) });
  }

  /** Counts a request to previews of `owner` until `leave` is called. */
  enter(address: string, owner: string): { leave: () => void } | { refusal: Refusal } {
    const { connections, requestsPerMinute } = this.#limits;
    const block = addressBlock(address);
    const open = this.#open.get(block) ?? new SharedCapacity(connections);
    const place = open.take(owner);
    if (typeof place === 'string') {
      const share = place === 'share' ? ' (of which an org takes at most half of those that others leave)' : '';
      const limit = `${connections} for an address without a member${share} (BERTH_VISITOR_CONNECTIONS)`;
      return { refusal: tooManyConnections(`this API replica has reached its limit of ${limit}`) };
    }
    const { allowed, nextInSeconds } = this.#requests.take(`${block} ${owner}`);
    if (!allowed) {
      place();
      const limit = `${requestsPerMinute} per minute (BERTH_VISITOR_REQUESTS_PER_MINUTE)`;
      return { refusal: tooManyRequests(limit, nextInSeconds) };
    }
    this.#open.set(block, open);
    return { leave: () => this.#leave(block, open, place) };
  }

  #leave(block: string, open: SharedCapacity, place: Release): void {
    place();
    if (open.taken === 0) this.#open.delete(block);
  }
}
