// The bearer token of a WebSocket's handshake: a browser cannot set headers and offers it as a
// subprotocol. It is never in the URL, which is logged, and never in the answer.
import type { IncomingMessage } from 'node:http';
import { BEARER_SUBPROTOCOL, WEBSOCKET_SUBPROTOCOL } from '@berth/contract/connections/websocket.ts';
import { CodedError } from '../../rules/coded-error.ts';

/** A name as RFC 9110 has it. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/**
 * The `Authorization` of a request, or what stands for it among the subprotocols that it offers.
 */
export function websocketAuthorization({ headers }: IncomingMessage): string | undefined {
  if (headers.authorization !== undefined) return headers.authorization;
  const names = (headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
  const offered = names.find((name) => name.startsWith(BEARER_SUBPROTOCOL));
  return offered === undefined ? undefined : `Bearer ${offered.slice(BEARER_SUBPROTOCOL.length)}`;
}

/**
 * Throws where subprotocols are offered and ours is not among them: a browser gives up on an answer
 * that takes none of what it offered.
 */
export function requireSubprotocol({ headers }: IncomingMessage): void {
  const header = headers['sec-websocket-protocol'];
  if (header === undefined) return;
  const offered = header.split(',').map((name) => name.trim());
  const wellFormed = offered.every((name) => TOKEN.test(name)) && new Set(offered).size === offered.length;
  if (wellFormed && offered.includes(WEBSOCKET_SUBPROTOCOL)) return;
  throw new CodedError(
    'invalid_request',
    `the header Sec-WebSocket-Protocol must be a list of names with ${WEBSOCKET_SUBPROTOCOL} among them, or absent`,
  );
}
