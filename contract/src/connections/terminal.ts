// An interactive terminal, or a command with or without a terminal, over a WebSocket. Protocol, for
// authors of clients:
//
//   open    new WebSocket('wss://…/v1/sandboxes/{id}/terminal?cols=120&rows=40', ['berth.v1',
//           'berth.bearer.' + token]). Clients that can set headers send Authorization instead of
//           the second subprotocol. A refusal is a JSON error; a browser, which
//           cannot read it, offers berth.outcome too (websocket.ts). `command=…` runs a
//           command instead of the login shell, as exec does: /bin/sh -c in /code, with the same
//           environment except TERM. `cwd=…`, `user=…` and `env[NAME]=…`, only with a command, are
//           the options of exec. `agent=true` opens the terminal of the coding agent instead.
//           `tty=false`, only with a command, uses pipes instead of a terminal; `cols` and `rows`
//           are then ignored. The request head is limited to 16 KiB: send longer input as bytes.
//   bytes   Binary frames in both directions, split anywhere, also inside a UTF-8 character. Pass
//           them to the terminal unchanged (xterm.js: write(new Uint8Array(data))) and send
//           keyboard input as UTF-8; Ctrl-C is a byte. The client must not echo. With tty=false,
//           frames of the client are stdin. Each frame of the server starts with one byte, 1 for
//           stdout or 2 for stderr; each stream is in order. The total is not limited.
//   end     {"end":true}, a text frame, with tty=false: closes stdin. No bytes may follow; signals
//           may.
//   resize  {"resize":{"cols":120,"rows":40}}, a text frame, with a terminal: sets its size.
//   signal  {"signal":"SIGTERM"}, a text frame: signals the foreground process group of the
//           terminal, or the process group of the command. A signal waits behind bytes that the
//           command has not read; closing the WebSocket does not.
//   pause   {"pause":true}, a text frame: the server stops reading from the sandbox, and the program
//           blocks once the buffers on the way are full. Bytes already sent still arrive.
//           {"pause":false} resumes. For browsers, whose WebSocket cannot be held back. The exit
//           waits behind unread output; sleep, revocation and a lost sandbox still close. While paused, at
//           most 2 MiB of input may wait for the program: more closes with 1003.
//   renew   {"bearer":"<token>"}, a text frame: replaces an access token before it expires, with
//           another token of the same user; at most every 10 s (websocket.ts).
//   exit    {"exit":0}, a text frame: the last frame of the server, after all output; then it
//           closes with 1000. Later frames of the client are dropped. After a signal:
//           {"exit":143,"signal":"SIGTERM"}. Other close codes are in websocket.ts: 4409 the
//           sandbox is not awake, 4401 the token is no longer valid. A closed connection cannot be
//           resumed: a new one starts a new shell.
//   close   Hangs up: the programs get SIGHUP. With a command, every process of its POSIX session
//           gets SIGHUP, and SIGKILL five seconds later. Background processes of a command that
//           exited by itself keep running, as with exec.
//           With agent=true, the connection leaves the terminal, and the agent's program goes on.
//   pings   Sent by the server every 20 s; every WebSocket implementation replies by itself. A
//           client that receives none for one minute may disconnect.
import { z } from 'zod';
import { EXEC_LIMITS, TERMINAL_DEFAULT_SIZE, TERMINAL_SIDE, TERMINAL_SIGNALS } from '../route/limits.ts';
import { shownAsInteger } from '../route/number-in-query.ts';
import { defineRoute } from '../route/route.ts';
import { USE_ERRORS } from '../sandboxes/use.ts';
import { sandboxParams } from '../sandboxes/sandboxes.ts';
import { text } from '../route/text.ts';
import { commandOptions } from '../commands/options.ts';

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

const OPTIONS = ['cwd', 'env', 'user'] as const;

const terminalQuery = z
  .object({
    command: text(1, EXEC_LIMITS.commandCharacters)
      .optional()
      .describe('Command for /bin/sh in /code, run instead of the login shell.'),
    tty: z
      .enum(['true', 'false'])
      .default('true')
      .describe('Whether to allocate a terminal. `false` requires `command`; `cols` and `rows` are then ignored.'),
    agent: z
      .enum(['true', 'false'])
      .default('false')
      .describe(
        "`true` opens the terminal of the sandbox's agent: its own program, started if necessary, which everyone " +
          'shares and which outlives connections, sleep and wake.',
      ),
    ...commandOptions,
    mayWake: z
      .enum(['true', 'false'])
      .default('true')
      .describe('`false` refuses a sandbox that is not awake with 409, also if its project has `wakeOnUse`.'),
    cols: sideInQuery.default(TERMINAL_DEFAULT_SIZE.cols).meta(shown('Columns.', TERMINAL_DEFAULT_SIZE.cols)),
    rows: sideInQuery.default(TERMINAL_DEFAULT_SIZE.rows).meta(shown('Rows.', TERMINAL_DEFAULT_SIZE.rows)),
  })
  .refine(({ command, tty, agent }) => agent === 'false' || (command === undefined && tty === 'true'), {
    path: ['agent'],
    error: 'must be absent with command and with tty=false: the terminal of the agent runs its program',
  })
  .refine(({ command, tty }) => command !== undefined || tty === 'true', {
    path: ['command'],
    error: 'must be given with tty=false: a login shell requires a terminal',
  })
  .check(({ value, issues }) => {
    const option = OPTIONS.find((name) => value[name] !== undefined);
    if (option === undefined || value.command !== undefined) return;
    const message = `must be given with ${option}: a login shell has no such option`;
    issues.push({ code: 'custom', path: ['command'], input: value.command, message });
  })
  .describe('`tty=false`, `cwd`, `env` and `user` require `command`; `agent=true` excludes them and `command`.');
export type TerminalQuery = z.output<typeof terminalQuery>;

const side = z.int().min(TERMINAL_SIDE.min).max(TERMINAL_SIDE.max);
export const terminalSignal = z.enum(TERMINAL_SIGNALS);
const signalOrder = z.strictObject({ signal: terminalSignal });
/** Pauses or resumes the output. Repeating an order changes nothing. */
const pauseOrder = z.strictObject({ pause: z.boolean() });

/** Text frames of the client. A signal goes to the foreground process group. */
export const terminalOrder = z.union([
  z.strictObject({ resize: z.strictObject({ cols: side, rows: side }) }),
  signalOrder,
  pauseOrder,
]);

/** Text frames of the client with tty=false. A signal goes to the command's process group. */
export const commandOrder = z.union([z.strictObject({ end: z.literal(true) }), signalOrder, pauseOrder]);
export type CommandOrder = z.infer<typeof commandOrder>;

/** First byte of each binary frame of the server with tty=false. */
export const COMMAND_OUTPUT = { stdout: 1, stderr: 2 } as const;

/**
 * Last frame of the server, a text frame: the exit code of the shell or command. After signal n the
 * code is 128 + n, with the signal's name.
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
    'Opens a terminal with a login shell, a command or the coding agent, or runs a command with pipes. Closing ' +
    'hangs up, except with `agent`. Wakes a stopped sandbox if its project has wakeOnUse',
  method: 'GET',
  path: '/v1/sandboxes/{sandboxId}/terminal',
  websocket: true,
  auth: ['session', 'api_key'],
  permission: 'sandbox.connect',
  request: { params: sandboxParams, query: terminalQuery },
  response: { status: 101, body: z.undefined() },
  errors: [
    ...USE_ERRORS,
    'too_many_connections',
    'variables_unsupported',
    'exec_options_unsupported',
    'agent_not_supported',
    'agent_not_installed',
    'agent_session_limit',
    'agent_process_alive',
    'agent_bridge_not_ready',
    'agent_bridge_stopped',
    'sandbox_busy',
  ],
  activity: 'sandbox_connected',
  published: false,
});
