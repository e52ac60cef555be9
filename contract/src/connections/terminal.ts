// An interactive terminal in a sandbox, or a command in one or without, as a WebSocket. For whoever
// writes a client of it (a console, a command line), the whole of it:
//
//   open    new WebSocket('wss://…/v1/sandboxes/{id}/terminal?cols=120&rows=40', ['berth.v1', 'berth.bearer.' + token]); who can set headers sends Authorization
//           instead of the second name. What is refused is a JSON error; a browser sees a failed connection alone and asks GET /v1/sandboxes/{id} for the status.
//           `command=…` runs that as exec does (/bin/sh -c in /code, its environment but for TERM) in place of the login shell; `tty=false`, with a command alone, gives
//           it pipes in place of a terminal: `cols` and `rows` mean nothing then. The request's head is bounded (16 KiB, as everywhere): what is longer goes as input.
//   bytes   binary frames, both ways, cut anywhere, also within a character: given to the terminal as they are (xterm.js: write(new Uint8Array(data))), and what its
//           user typed sent in UTF-8. Ctrl-C and its like are bytes. Nothing is echoed but by the other end. With tty=false those of the client are the command's
//           input, and each of the server begins with one byte that says what the rest is of: 1 stdout, 2 stderr; in order within each. No total is bounded.
//   end     {"end":true} as a text frame, with tty=false: the command sees the end of its input. No bytes may follow; signals may.
//   resize  {"resize":{"cols":120,"rows":40}} as a text frame, with a terminal, whenever the size changes; the programs are told.
//   signal  {"signal":"SIGTERM"} as a text frame, to the process group in the foreground of the terminal, or to that of the command. Behind bytes that the command does
//           not read it waits with them; closing does not.
//   renew   {"bearer":"<another token of the same user>"} as a text frame, before a session token expires; at most every 10 s (websocket.ts).
//   exit    {"exit":0} as a text frame, the server's last, behind all that the shell or command wrote; then it closes with 1000. What comes for it then is dropped.
//           {"exit":143,"signal":"SIGTERM"} when a signal ended it. Other close codes: websocket.ts; 4409 is a sandbox that is not awake any more, 4401 a token that is
//           good no more. There is nothing to come back to: a new connection is a new shell.
//   close   hangs up: the programs get SIGHUP. Of a command every process of its session does, and those that are left two seconds later are killed. A command that ended by
//           itself leaves what it put into the background running, as exec does.
//   pings   are the server's, every 20 s, and answered by every WebSocket by itself; a client that hears none for a minute may give up.
import { z } from 'zod';
import { EXEC_LIMITS, TERMINAL_DEFAULT_SIZE, TERMINAL_SIDE } from '../route/limits.ts';
import { shownAsInteger } from '../route/number-in-query.ts';
import { defineRoute } from '../route/route.ts';
import { USE_ERRORS } from '../sandboxes/use.ts';
import { sandboxParams } from '../sandboxes/sandboxes.ts';
import { text } from '../route/text.ts';

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

export const terminalQuery = z
  .object({
    command: text(1, EXEC_LIMITS.commandCharacters)
      .optional()
      .describe('Given to /bin/sh in /code, in place of the login shell.'),
    tty: z
      .enum(['true', 'false'])
      .default('true')
      .describe('Whether it has a terminal; without one there must be a command, and `cols` and `rows` mean nothing.'),
    cols: sideInQuery.default(TERMINAL_DEFAULT_SIZE.cols).meta(shown('Columns.', TERMINAL_DEFAULT_SIZE.cols)),
    rows: sideInQuery.default(TERMINAL_DEFAULT_SIZE.rows).meta(shown('Rows.', TERMINAL_DEFAULT_SIZE.rows)),
  })
  .refine(({ command, tty }) => command !== undefined || tty === 'true', {
    path: ['command'],
    error: 'must be given with tty=false: a login shell has a terminal',
  })
  .describe('`tty=false` needs a `command`.');
export type TerminalQuery = z.output<typeof terminalQuery>;

const side = z.int().min(TERMINAL_SIDE.min).max(TERMINAL_SIDE.max);
export const terminalSignal = z.enum([
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGKILL',
  'SIGUSR1',
  'SIGUSR2',
  'SIGTERM',
  'SIGCONT',
  'SIGTSTP',
  'SIGWINCH',
]);
const signalOrder = z.strictObject({ signal: terminalSignal });

/**
 * Text frames of the client. A signal goes to the program in the foreground. (What keys do, Ctrl-C
 * among them, is in the bytes.)
 */
export const terminalOrder = z.union([
  z.strictObject({ resize: z.strictObject({ cols: side, rows: side }) }),
  signalOrder,
]);
export type TerminalOrder = z.infer<typeof terminalOrder>;

/**
 * Text frames of the client with tty=false: the end of the input, and signals to the command's
 * process group.
 */
export const commandOrder = z.union([z.strictObject({ end: z.literal(true) }), signalOrder]);
export type CommandOrder = z.infer<typeof commandOrder>;

/** The first byte of each binary frame of the server with tty=false. */
export const COMMAND_OUTPUT = { stdout: 1, stderr: 2 } as const;

/**
 * The last frame of the server, a text frame: the exit code of shell or command, 128 + n when
 * signal n ended it, and the signal's name then. Then it is closed.
 */
export const terminalExit = z.strictObject({
  exit: z.int().min(0).max(255),
  signal: z
    .string()
    .regex(/^SIG[A-Z0-9]{1,12}$/)
    .optional(),
});

export const terminalInSandbox = defineRoute({
  name: 'terminalInSandbox',
  summary:
    'The login shell of the sandbox, or a command, in a terminal of its own, which binary frames are the bytes of; or a command with its pipes. Its end hangs up. Wakes as a tunnel does',
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
