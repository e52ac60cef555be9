// Rules shared by the WebSocket routes: the bearer token of the handshake, its renewal, and close
// codes.
import { z } from 'zod';
import { ERRORS, type ErrorCode } from '../route/errors.ts';

/**
 * Subprotocol of every WebSocket of the API. A browser, which cannot set headers, sends its token
 * as a second subprotocol: `new WebSocket(url, ['berth.v1', 'berth.bearer.' + token])`. Other
 * clients send `Authorization`.
 */
export const WEBSOCKET_SUBPROTOCOL = 'berth.v1';
export const BEARER_SUBPROTOCOL = 'berth.bearer.';

/**
 * Offered beside {@link WEBSOCKET_SUBPROTOCOL} by clients that cannot read the response to a
 * refused upgrade, such as browsers. If the server selects it, its first text frame is the
 * outcome: a refusal becomes a frame with the JSON error, then a close with its status.
 */
export const OUTCOME_SUBPROTOCOL = 'berth.outcome';
export type WebSocketOutcome =
  | { opened: true }
  | {
      refused: {
        status: number;
        requestId: string;
        /** Seconds. */
        retryAfter?: string;
        /** Error envelope. */
        body: unknown;
      };
    };

/**
 * Text frame of the client, accepted by every WebSocket: replaces the access token with another one
 * of the same user. A connection is closed when its token expires, is revoked or loses the
 * permission.
 */
export const renewBearer = z.strictObject({ bearer: z.string().min(1).max(512) }).meta({ writeOnly: true });

/**
 * Close codes of the server: 1000 normal end, 1001 replica shutting down, 1003 unknown frame, 1009
 * frame too long, 1011 connection to the sandbox lost. An API error closes with 4000 + its HTTP
 * status, and its code as reason.
 */
export const WEBSOCKET_CLOSE = { ended: 1000, goingAway: 1001, notUnderstood: 1003, broken: 1011 } as const;

/** Added to the HTTP status of an API error. */
export const API_ERROR_CLOSE = 4_000;

/** Close code of an API error. */
export function closeCodeOf(code: ErrorCode): number {
  return API_ERROR_CLOSE + ERRORS[code].status;
}
