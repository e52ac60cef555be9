// What the WebSocket routes have in common: how the bearer token comes with the handshake, how
// their connections are watched, and how they end.
import { z } from 'zod';
import { ERRORS, type ErrorCode } from '../route/errors.ts';

/**
 * The subprotocol of every WebSocket of the API, and the answer's. A browser, which can set no
 * header, offers it together with {@link BEARER_SUBPROTOCOL} and its token: `new WebSocket(url,
 * ['berth.v1', 'berth.bearer.' + token])`. Whoever can sends `Authorization` as ever.
 */
export const WEBSOCKET_SUBPROTOCOL = 'berth.v1';
export const BEARER_SUBPROTOCOL = 'berth.bearer.';

/**
 * A text frame of the client that every WebSocket takes: another token of the same user, for a
 * session token that is about to expire. A connection is closed when its token expires, is revoked,
 * or loses the permission.
 */
export const renewBearer = z.strictObject({ bearer: z.string().min(1).max(512) }).meta({ writeOnly: true });

/**
 * How the server closes: 1000 when the connection came to its end, 1001 when the instance stops,
 * 1003 for a frame that it does not understand, 1009 for one that is too long, 1011 when the
 * connection into the sandbox broke, and 4000 + the HTTP status for an error of the table; the
 * reason is the error's code then.
 */
export const WEBSOCKET_CLOSE = { ended: 1000, goingAway: 1001, notUnderstood: 1003, broken: 1011 } as const;

/** The close code of an error. */
export function closeCodeOf(code: ErrorCode): number {
  return 4_000 + ERRORS[code].status;
}
