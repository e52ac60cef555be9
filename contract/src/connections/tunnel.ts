// A TCP connection to a port of a sandbox over a WebSocket, for ssh and other TCP clients.
import { z } from 'zod';
import { PORT, SSH_PORT } from '../route/limits.ts';
import { shownAsInteger } from '../route/number-in-query.ts';
import { defineRoute } from '../route/route.ts';
import { USE_ERRORS } from '../sandboxes/use.ts';
import { sandboxParams } from '../sandboxes/sandboxes.ts';

const portText = `must be a whole number from ${PORT.min} to ${PORT.max}`;

const tunnelQuery = z.object({
  port: z
    .string()
    .regex(/^[1-9]\d{0,4}$/, portText)
    .transform(Number)
    .refine((port) => port <= PORT.max, portText)
    .default(SSH_PORT)
    .meta({
      ...shownAsInteger({ minimum: PORT.min, maximum: PORT.max, description: 'TCP port in the sandbox.' }),
      default: SSH_PORT,
    }),
});

/**
 * Text frames of the client. Data is sent in binary frames of any length.
 * - `end`, also of the server: half-closes its direction, as a TCP FIN. The server closes the
 *   WebSocket after both directions ended, or when the other direction has been silent for 25 s
 *   after one ended.
 * - `pause`: the server stops reading from the sandbox until `pause` is false, as for a terminal.
 */
export const tunnelOrder = z.union([z.strictObject({ end: z.literal(true) }), z.strictObject({ pause: z.boolean() })]);

export const tunnelToSandbox = defineRoute({
  name: 'tunnelToSandbox',
  summary:
    'Opens a TCP connection to a port of a sandbox, as binary frames. Wakes a stopped sandbox if its project ' +
    'has wakeOnUse',
  method: 'GET',
  path: '/v1/sandboxes/{sandboxId}/tunnel',
  websocket: true,
  auth: ['session', 'api_key'],
  permission: 'sandbox.connect',
  request: { params: sandboxParams, query: tunnelQuery },
  response: { status: 101, body: z.undefined() },
  errors: [...USE_ERRORS, 'port_refused', 'port_forbidden', 'too_many_connections'],
  activity: 'sandbox_connected',
  published: false,
});
