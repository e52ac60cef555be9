// A kind of fuzzer request: a file that exports a FuzzKind, and a line in kinds.ts.
import type { Random } from '../../world/random.ts';
import type { Caller } from '../../world/client.ts';
import type { PreviewRequest, PreviewEndpoints } from './preview-request.ts';

export interface FuzzRequest {
  method: string;
  /** Path and query as sent: printable ASCII. */
  target: string;
  headers?: Readonly<Record<string, string>>;
  body?: string | Buffer;
}

/** A response that matches the contract. */
export interface FuzzAnswer {
  status: number;
  /** Parsed JSON; undefined for HEAD. */
  body: unknown;
}

/** Objects that requests can be about. */
export interface FuzzWorld {
  caller: Caller;
  /** Sandboxes that are awake during the whole run. */
  awake: readonly string[];
  /** Ids that cannot serve requests: an asleep sandbox, a deleted one, an unknown one. */
  away: readonly string[];
  previews: PreviewEndpoints;
  /** Live agent sessions of awake sandboxes. */
  sessions: readonly string[];
  /** Credentials of every kind, by their names. */
  tokens: Readonly<Record<TokenName, string>>;
}

export const TOKEN_NAMES = ['apiKey', 'session', 'agentToken', 'readOnlyToken'] as const;
type TokenName = (typeof TOKEN_NAMES)[number];

/** A turn of one client. All randomness comes from `random`, so that a turn is reproducible. */
export interface Turn {
  /** Unique in the run, such as `c2.17`. */
  name: string;
  random: Random;
  world: FuzzWorld;
  /** Sends a request and judges the response. null: none, or a faulty one, already reported. */
  send(this: void, request: FuzzRequest): Promise<FuzzAnswer | null>;
  /** Sends requests to previews and judges the responses; faults are reported. */
  sendPreview(this: void, request: PreviewRequest): Promise<void>;
  /** Reports a fault that no single response shows. */
  wrong(this: void, what: string): void;
}

export interface FuzzKind {
  name: string;
  /** Relative frequency. */
  weight: number;
  /** Sends one request, or several related ones. */
  run(this: void, turn: Turn): Promise<void>;
}
