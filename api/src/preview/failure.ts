// What went wrong on the way to an app or back, as its visitor is told.
import { HostError } from '../hosts/error.ts';
import { TooManyConnections } from './connections.ts';
import {
  BROKEN_ANSWER,
  nothingListens,
  PORT_FORBIDDEN,
  TOO_MANY_CONNECTIONS,
  UNREACHABLE,
  type Refusal,
} from './refusals.ts';

/** The app sent no whole answer, or none at all. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
}

/** `not_there`: the machine does not run where its row says; what it is now is to be looked up. */
export function failureOf(error: Error, port: number): Refusal | 'not_there' {
  if (error instanceof TooManyConnections) return TOO_MANY_CONNECTIONS;
  if (!(error instanceof HostError)) return BROKEN_ANSWER;
  switch (error.code) {
    case 'port_refused':
      return nothingListens(port);
    case 'port_forbidden':
      return PORT_FORBIDDEN;
    case 'too_many_streams':
      return TOO_MANY_CONNECTIONS;
    case 'vm_not_running':
    case 'vm_not_found':
    case 'superseded':
      return 'not_there';
    default:
      return UNREACHABLE;
  }
}
