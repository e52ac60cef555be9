// An interactive terminal in a sandbox, as a WebSocket. For whoever writes a client of it (a console, a command line), the whole of it:
//
//   open    new WebSocket('wss://…/v1/sandboxes/{id}/terminal?cols=120&rows=40', ['berth.v1', 'berth.bearer.' + token]); who can set headers sends Authorization
//           instead of the second name. What is refused is a JSON error; a browser sees a failed connection alone and asks GET /v1/sandboxes/{id} for the status.
//   bytes   binary frames, both ways, cut anywhere, also within a character: given to the terminal as they are (xterm.js: write(new Uint8Array(data))), and what its
//           user typed sent in UTF-8. Ctrl-C and its like are bytes. Nothing is echoed but by the other end.
//   resize  {"resize":{"cols":120,"rows":40}} as a text frame, whenever the size changes; the programs are told.
//   signal  {"signal":"SIGTERM"} as a text frame, to the program in the foreground.
//   renew   {"bearer":"<another token of the same user>"} as a text frame, before a session token expires; at most every 10 s (websocket.ts).
//   end     {"exit":0} as a text frame, the server's last; then it closes with 1000. Other close codes: websocket.ts; 4409 is a sandbox that is not awake any more,
//           4401 a token that is good no more. There is nothing to come back to: a new connection is a new shell.
//   pings   are the server's, every 20 s, and answered by every WebSocket by itself; a client that hears none for a minute may give up.
import { z } from 'zod';
import { TERMINAL_DEFAULT_SIZE, TERMINAL_SIDE } from './limits.ts';
import { shownAsInteger } from './number-in-query.ts';
import { defineRoute } from './route.ts';
import { USE_ERRORS } from './sandbox-use.ts';
import { sandboxParams } from './sandboxes.ts';

const sideText = `must be a whole number from ${TERMINAL_SIDE.min} to ${TERMINAL_SIDE.max}`;
const sideInQuery = z
  .string()
  .regex(/^\d{1,4}$/, sideText)
  .transform(Number)
  .refine((side) => side >= TERMINAL_SIDE.min && side <= TERMINAL_SIDE.max, sideText);
const shown = (description: string, side: number): Record<string, unknown> => ({
  ...shownAsInteger({ minimum: TERMINAL_SIDE.min, maximum: TERMINAL_SIDE.max, description }),
  default: side,
});

export const terminalQuery = z.object({
  cols: sideInQuery.default(TERMINAL_DEFAULT_SIZE.cols).meta(shown('Columns.', TERMINAL_DEFAULT_SIZE.cols)),
  rows: sideInQuery.default(TERMINAL_DEFAULT_SIZE.rows).meta(shown('Rows.', TERMINAL_DEFAULT_SIZE.rows)),
});

const side = z.int().min(TERMINAL_SIDE.min).max(TERMINAL_SIDE.max);
export const terminalSignal = z.enum(['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGKILL', 'SIGUSR1', 'SIGUSR2', 'SIGTERM', 'SIGCONT', 'SIGTSTP']);

/** Text frames of the client. A signal goes to the program in the foreground. (What keys do, Ctrl-C among them, is in the bytes.) */
export const terminalOrder = z.union([
  z.strictObject({ resize: z.strictObject({ cols: side, rows: side }) }),
  z.strictObject({ signal: terminalSignal }),
]);
export type TerminalOrder = z.infer<typeof terminalOrder>;

/** The last frame of the server, a text frame: the shell's exit code, 128 + n when signal n ended it. Then the connection is closed. */
export const terminalExit = z.strictObject({ exit: z.int().min(0).max(255) });

export const terminalInSandbox = defineRoute({
  name: 'terminalInSandbox',
  summary:
    'The login shell of the sandbox in a terminal of its own, which binary frames are the bytes of; its end hangs the terminal up. Wakes as a tunnel does',
  method: 'GET',
  path: '/v1/sandboxes/{sandboxId}/terminal',
  websocket: true,
  auth: ['session', 'api_key'],
  permission: 'sandbox.connect',
  request: { params: sandboxParams, query: terminalQuery },
  response: { status: 101, body: z.undefined() },
  errors: [...USE_ERRORS, 'too_many_connections'],
  activity: 'sandbox_connected',
  published: false,
});
