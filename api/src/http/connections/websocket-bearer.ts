// The bearer token of a WebSocket handshake: browsers cannot set headers, so they offer it as a
// subprotocol. The token is never in the URL, which is logged, and never in the response.
import type { IncomingMessage } from 'node:http';
import { BEARER_SUBPROTOCOL, WEBSOCKET_SUBPROTOCOL } from '@berth/contract/connections/websocket.ts';
import { CodedError } from '../../rules/coded-error.ts';

/** Token syntax of RFC 9110. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Returns the request's `Authorization`, or its equivalent among the offered subprotocols. */
export function websocketAuthorization({ headers }: IncomingMessage): string | undefined {
  if (headers.authorization !== undefined) return headers.authorization;
  const offered = namesOf(headers['sec-websocket-protocol']).find((name) => name.startsWith(BEARER_SUBPROTOCOL));
  return offered === undefined ? undefined : `Bearer ${offered.slice(BEARER_SUBPROTOCOL.length)}`;
}

/**
 * Throws when subprotocols are offered without ours: a browser rejects a response that selects none
 * of its offers.
 */
export function requireSubprotocol({ headers }: IncomingMessage): void {
  const header = headers['sec-websocket-protocol'];
  if (header === undefined) return;
  const offered = namesOf(header);
  const wellFormed = offered.every((name) => TOKEN.test(name)) && new Set(offered).size === offered.length;
  if (wellFormed && offered.includes(WEBSOCKET_SUBPROTOCOL)) return;
  throw new CodedError(
    'invalid_request',
    `the header Sec-WebSocket-Protocol must be absent, or a list that includes ${WEBSOCKET_SUBPROTOCOL}`,
  );
}

export function offers({ headers }: IncomingMessage, name: string): boolean {
  return namesOf(headers['sec-websocket-protocol']).includes(name);
}

function namesOf(header: string | undefined): string[] {
  return (header ?? '').split(',').map((name) => name.trim());
}
