// A daemon that is called, and what a caller says of a call to it.
import type http from 'node:http';
import type { CallSpec, PartsOf, Side } from '../calls/define.ts';
import type { Upload } from './serve.ts';

export type Target = { socketPath: string } | { host: string; port: number };

export interface CallOptions {
  /**
   * Ends the call, which then rejects with the signal's reason; an open stream is the caller's to
   * destroy.
   */
  signal?: AbortSignal | undefined;
  /** Replaces the deadline of the call. */
  deadlineMs?: number | undefined;
}

/** Request of a call: its parts, and what the wire of a host adds to them. */
export type CallRequest<C extends CallSpec> = PartsOf<C> & {
  vmId?: string;
  epoch?: number;
  upload?: Upload;
};

/**
 * `broken`: no connection, or it broke before the whole response came. `invalid`: a response that
 * is not of the protocol.
 */
export type FailureKind = 'broken' | 'invalid';

/** A daemon that is called. */
export interface Peer {
  readonly side: Side;
  readonly target: Target;
  /** Value of the header `Authorization`. */
  authorization(): string | undefined;
  agentOf(call: CallSpec): http.Agent;
  /**
   * For a repeatable call whose pooled connection was closed before the request was read; absent:
   * the call fails then.
   */
  readonly freshAgent?: http.Agent;
  /** Error of a refusal; undefined for one that is not of the protocol. */
  refusal(call: CallSpec, what: string, status: number, text: string): Error | undefined;
  /** Error of a call without a response within its deadline. */
  late(what: string, deadlineMs: number): Error;
  /** Error of any other failure. */
  failure(kind: FailureKind, what: string, message: string, cause?: unknown): Error;
  /** Whether the error is one of these. */
  isFailure(error: unknown): error is Error;
}
