// Calls that become raw byte streams. The end of a direction is forwarded and leaves the other open
// while bytes move. A sleep, a destroy or the exit of the VM closes a stream at once. The host
// limits a stream's silence and age.
import { TERMINAL_SIDE, TERMINAL_SIGNALS } from '@berth/contract/route/limits.ts';
import { z } from 'zod';
import { agentSessionId } from '../agents.ts';
import { COMMAND_ERRORS, EXEC_COMMAND_LENGTH, PORT_TEXT, type CommandErrorCode } from '../guest-limits.ts';
import { deadlineOf, defineCall } from './define.ts';
import { guestRunRequest } from './exec.ts';
import { variablesId } from './variables.ts';

/**
 * Headers of a request to the host daemon for a stream: the org whose share of streams it takes,
 * and its id for {@link closeStreams}. An API of an earlier release sends neither.
 */
export const STREAM_HEADERS = { org: 'berth-org', stream: 'berth-stream' } as const;
export const STREAM_LABEL = /^[A-Za-z0-9_-]{1,64}$/;
/** Limit of one {@link closeStreams} call. */
export const CLOSED_STREAMS = 256;

/** A TCP port in a path: digits only, no sign, no leading zero. */
const port = z.string().regex(PORT_TEXT).describe('is no port: a whole number from 1 to 65535');

/**
 * A stream to a port of the VM's loopback (127.0.0.1, then ::1), for programs that listen nowhere
 * else. Refused with 403 for the daemon's own port, with 502 when nothing listens, with 504 when
 * the listener does not accept the connection.
 */
export const guestPort = defineCall({
  name: 'port',
  target: 'guest',
  method: 'GET',
  path: '/ports/{port}',
  params: z.strictObject({ port }),
  form: 'upgrade',
  upgrade: 'tcp',
  statuses: {
    403: ['port_forbidden', 'the port is reserved for the guest daemon'],
    502: ['port_refused', 'nothing listens on this port of the guest'],
  },
  deadlineMs: 10_000,
  marginMs: 5_000,
  since: 2,
});

/**
 * A stream to a TCP port of a `running` guest. The host dials only the guest's address in its
 * network slot; if refused, it calls {@link guestPort}. `port_refused`: nothing listens.
 * `port_forbidden`: the guest daemon's own port.
 */
export const openPort = defineCall({
  name: 'openPort',
  target: 'host',
  method: 'GET',
  path: '/vms/{vmId}/ports/{port}',
  params: z.strictObject({ port }),
  form: 'upgrade',
  upgrade: 'tcp',
  deadlineMs: 2 * deadlineOf(guestPort, 'guest'),
  marginMs: 10_000,
  since: 2,
});

/**
 * Closes streams that the API abandoned, by their ids; ignores unknown ones. Needed because the end
 * of a connection is invisible behind bytes that the guest does not read.
 */
export const closeStreams = defineCall({
  name: 'closeStreams',
  target: 'host',
  method: 'POST',
  path: '/streams/close',
  body: z.strictObject({ streams: z.array(z.string().regex(STREAM_LABEL)).max(CLOSED_STREAMS) }),
  requestBytes: 32_768,
  form: 'json',
  response: z.strictObject({}),
  responseBytes: 1_024,
  deadlineMs: 0,
  marginMs: 5_000,
  repeatable: true,
  since: 2,
});

export const terminalSize = z.strictObject({
  cols: z.int().min(TERMINAL_SIDE.min).max(TERMINAL_SIDE.max),
  rows: z.int().min(TERMINAL_SIDE.min).max(TERMINAL_SIDE.max),
});
export type TerminalSize = z.infer<typeof terminalSize>;

/**
 * Program at the other end of a terminal stream; null: the login shell. Without a terminal,
 * `command` is required.
 */
export type TerminalAsked = (
  | ({ tty: true; command: string | null } & TerminalSize)
  | { tty: false; command: string }
) & { [option in keyof typeof options]?: string | undefined };

/** The terminal of an agent session; guests before version 12 have none. */
export type AgentTerminalAsked = TerminalSize & { agent: string };

const command = z.string().min(1).max(EXEC_COMMAND_LENGTH);
const side = z.coerce.number<string>().int().min(TERMINAL_SIDE.min).max(TERMINAL_SIDE.max);
const options = {
  /** Id of an earlier `stageVariables`; guests before version 10 have neither. */
  variables: variablesId.optional(),
  /** Only with a command, as is `user`; guests before version 11 have neither. */
  cwd: guestRunRequest.shape.cwd,
  user: guestRunRequest.shape.user,
};
const terminalQuery = z.union([
  z.strictObject({ cols: side, rows: side, command: command.optional(), ...options }),
  z.strictObject({ tty: z.literal('false'), command, ...options }),
  z.strictObject({ cols: side, rows: side, agent: agentSessionId }),
]);
export type TerminalQuery = z.infer<typeof terminalQuery>;

export function terminalQueryOf(request: TerminalAsked | AgentTerminalAsked): TerminalQuery {
  if ('agent' in request) return request;
  const { variables, cwd, user, ...asked } = request;
  const given = {
    ...(variables === undefined ? {} : { variables }),
    ...(cwd === undefined ? {} : { cwd }),
    ...(user === undefined ? {} : { user }),
  };
  if (!asked.tty) return { tty: 'false', command: asked.command, ...given };
  const { cols, rows, command } = asked;
  return { cols, rows, ...(command === null ? {} : { command }), ...given };
}

/**
 * A stream to the login shell of `berth` or to a `/bin/sh -c` command, in a dedicated terminal in
 * `/code`; to such a command with pipes; or to the shared terminal of an agent session. Carries the
 * frames of terminal-frames.ts. Byte frames are terminal input and output; without a terminal,
 * frames from a command begin with a stream number. Control frames to the guest are {@link
 * terminalOrder}; the last frame from it is {@link terminalExit}.
 * If the connection closes first, the shell and its programs get SIGHUP. A command's whole POSIX
 * session does, and SIGKILL some seconds later. The program of an agent session goes on.
 */
export const openTerminal = defineCall({
  name: 'openTerminal',
  target: 'pass-through',
  method: 'GET',
  path: '/terminal',
  query: terminalQuery,
  form: 'upgrade',
  upgrade: 'berth-terminal',
  errors: [
    ...(Object.keys(COMMAND_ERRORS) as CommandErrorCode[]),
    'agent_session_missing',
    'agent_bridge_stopped',
    'agent_unsupported',
  ],
  statuses: {
    400: ['exec_options_unsupported', 'the guest daemon lacks an option of the terminal'],
    429: ['too_many_streams', 'the VM has reached its limit of terminals or commands'],
  },
  deadlineMs: 20_000,
  marginMs: 10_000,
  since: 2,
});

export const terminalOrder = z.union([
  /** Only with a terminal. */
  z.strictObject({ resize: terminalSize }),
  z.strictObject({ signal: z.enum(TERMINAL_SIGNALS) }),
  /** The end of the input; only without a terminal. */
  z.strictObject({ end: z.literal(true) }),
]);
export type TerminalOrder = z.infer<typeof terminalOrder>;

/** Exit code of the shell or command; 128 + n, with the signal's name, when signal n killed it. */
export const terminalExit = z.strictObject({ exit: z.int().min(0).max(255), signal: z.string().max(16).optional() });
export type TerminalExit = z.infer<typeof terminalExit>;
