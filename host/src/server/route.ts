// What a route of the internal protocol is to the server, and how what comes in is parsed.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { vmId } from '@berth/protocol/host.ts';
import { z } from 'zod';
import { HostError } from '../vm/host-error.ts';

export interface Call {
  request: IncomingMessage;
  response: ServerResponse;
  url: URL;
  /** The VM's id in the path; empty for routes without. */
  id: string;
  /** Aborted when the caller goes away. */
  signal: AbortSignal;
}

export interface Route {
  method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  path: RegExp;
  handle(call: Call): Promise<void>;
}

/** The id in a path that a route matched. Throws `invalid_request` when it is no id. */
export function idIn(match: RegExpExecArray): string {
  return match[1] === undefined ? '' : parse(vmId, match[1], 'the id in the path');
}

/** Throws `invalid_request` that says what of `what` is not valid. */
export function parse<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new HostError('invalid_request', `${what} is not valid: ${z.prettifyError(parsed.error)}`);

  return parsed.data;
}
