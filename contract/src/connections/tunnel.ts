// A raw connection to a port of a sandbox, as a WebSocket: for ssh, and for whatever else speaks
// TCP.
import { z } from 'zod';
import { PORT, SSH_PORT } from '../route/limits.ts';
import { shownAsInteger } from '../route/number-in-query.ts';
import { defineRoute } from '../route/route.ts';
import { USE_ERRORS } from '../sandboxes/use.ts';
import { sandboxParams } from '../sandboxes/sandboxes.ts';

const portText = `must be a whole number from ${PORT.min} to ${PORT.max}`;

export const tunnelQuery = z.object({
  port: z
    .string()
    .regex(/^[1-9]\d{0,4}$/, portText)
    .transform(Number)
    .refine((port) => port <= PORT.max, portText)
    .default(SSH_PORT)
    .meta({
      ...shownAsInteger({ minimum: PORT.min, maximum: PORT.max, description: 'A TCP port of the sandbox.' }),
      default: SSH_PORT,
    }),
});

/**
 * A text frame of either side: nothing more comes from it, as the end of a direction of a TCP
 * connection. What a tunnel carries is binary frames, however cut. After both ends the server
 * closes.
 */
export const tunnelEnd = z.strictObject({ end: z.literal(true) });

export const tunnelToSandbox = defineRoute({
  name: 'tunnelToSandbox',
  summary:
    'A TCP connection to a port of the sandbox, as binary frames. Wakes a stopped sandbox first where its project has wakeOnUse',
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
