// A called daemon, and its errors as seen by the caller.
import type http from 'node:http';
import type { CallSpec, PartsOf, Side } from '../calls/define.ts';
import type { Upload } from './serve.ts';

export type Target = { socketPath: string } | { host: string; port: number };

export interface CallOptions {
  /**
   * Aborts the call, which rejects with the signal's reason. The caller must destroy an open
   * stream.
   */
  signal?: AbortSignal | undefined;
  /** Replaces the deadline of the call. */
  deadlineMs?: number | undefined;
}

/** Request of a call: its parts, and the additions of the host wire. */
export type CallRequest<C extends CallSpec> = PartsOf<C> & {
  vmId?: string;
  epoch?: number;
  upload?: Upload;
  /** Additional headers of an upgrade. */
  headers?: Readonly<Record<string, string>>;
};

/**
 * `broken`: no connection, or it broke before the whole response. `invalid`: a response that
 * violates the protocol.
 */
export type FailureKind = 'broken' | 'invalid';

export interface Peer {
  readonly side: Side;
  readonly target: Target;
  /** Value of the header `Authorization`. */
  authorization(): string | undefined;
  agentOf(call: CallSpec): http.Agent;
  /**
   * For a repeatable call whose pooled connection was closed before the request was read. Without
   * it the call fails.
   */
  readonly freshAgent?: http.Agent;
  /** Error of a refusal; undefined for one that violates the protocol. */
  refusal(call: CallSpec, what: string, status: number, text: string): Error | undefined;
  /** Error of a call without a response within its deadline. */
  late(what: string, deadlineMs: number): Error;
  /** Error of any other failure. */
  failure(kind: FailureKind, what: string, message: string, cause?: unknown): Error;
  /** True for an error made by these methods. */
  isFailure(error: unknown): error is Error;
}
