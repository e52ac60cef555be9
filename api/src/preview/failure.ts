// Maps failures between API and app to refusals.
import { HostError } from '../hosts/error.ts';
import { TooManyConnections } from './connection-pool.ts';
import {
  BROKEN_RESPONSE,
  portRefused,
  PORT_FORBIDDEN,
  tooManyConnections,
  UNREACHABLE,
  type Refusal,
} from './refusals.ts';

/** The app closed the connection without a complete response head. */
export class NoResponse extends Error {
  override readonly name = 'NoResponse';
}

/** `not_running`: the VM is not running on the host that its row names. Read the row again. */
export function failureOf(error: Error, port: number): Refusal | 'not_running' {
  if (error instanceof TooManyConnections) return tooManyConnections(error.message);
  if (!(error instanceof HostError)) return BROKEN_RESPONSE;
  switch (error.code) {
    case 'port_refused':
      return portRefused(port);
    case 'port_forbidden':
      return PORT_FORBIDDEN;
    case 'too_many_streams':
      return tooManyConnections(error.message);
    case 'vm_not_running':
    case 'vm_not_found':
    case 'superseded':
      return 'not_running';
    default:
      return UNREACHABLE;
  }
}
