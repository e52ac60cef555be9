// Requests whose responses the service holds until there is something new.
import type { CallOptions } from './transport.ts';

/** Added to the hold for the deadline of a request. */
const MARGIN_MS = 15_000;

/** Header of a request whose response is held. */
export function held(seconds: number | undefined): { headers?: { Prefer: string } } {
  return seconds === undefined ? {} : { headers: { Prefer: `wait=${seconds}` } };
}

export function whileHeld(seconds: number | undefined, options: CallOptions): CallOptions {
  return seconds === undefined ? options : { timeoutMs: seconds * 1_000 + MARGIN_MS, ...options };
}
