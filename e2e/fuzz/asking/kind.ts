// What a kind of request is to a run of the fuzzer. A new one is a file that gives a FuzzKind, and
// a line in kinds.ts.
import type { Random } from '../../world/random.ts';
import type { Caller } from '../../world/client.ts';
import type { FuzzVisit, PreviewDoors } from './visit.ts';

export interface FuzzRequest {
  method: string;
  /** Path and query as they are sent: printable ASCII. */
  target: string;
  headers?: Readonly<Record<string, string>>;
  body?: string | Buffer;
}

/** An answer that was as the contract says. */
export interface FuzzAnswer {
  status: number;
  /** Parsed JSON; undefined for HEAD. */
  body: unknown;
}

/** What there is to send requests about. */
export interface FuzzWorld {
  caller: Caller;
  /** Sandboxes that are awake, all of the run. */
  awake: readonly string[];
  /** Ids of what cannot answer: a sandbox that sleeps, one that is deleted, one that never was. */
  away: readonly string[];
  previews: PreviewDoors;
}

/**
 * One turn of one client. Everything random in it comes from `random`, so that it can be had again.
 */
export interface Turn {
  /** Of the run, such as `c2.17`; unique. */
  name: string;
  random: Random;
  world: FuzzWorld;
  /**
   * Sends a request and judges what comes. Null: no answer, or none as the contract says; it is
   * noted already.
   */
  send(this: void, request: FuzzRequest): Promise<FuzzAnswer | null>;
  /** Sends requests to previews and judges what comes; what is wrong is noted. */
  visit(this: void, visit: FuzzVisit): Promise<void>;
  /** Notes what no single answer shows. */
  wrong(this: void, what: string): void;
}

export interface FuzzKind {
  name: string;
  /** How often it comes, beside the others. */
  weight: number;
  /** Sends one request or some that belong together. */
  take(this: void, turn: Turn): Promise<void>;
}
