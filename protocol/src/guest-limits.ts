// The numbers of the guest wire. Imports nothing: the guest daemon bundles this file alone, because zod would cost every machine 12 MB of
// memory and its first command some milliseconds. Everybody else imports them from `guest.ts`.

/** TCP port of the guest daemon. Below 1024: an unprivileged process of the tenant cannot take it over. */
export const GUEST_PORT = 987;

/** Bytes kept of each of stdout and stderr (spec: Limits, exec output). The tail is kept. */
export const EXEC_OUTPUT_BYTES = 65_536;
export const EXEC_TIMEOUT_SECONDS = { default: 120, min: 1, max: 600 } as const;
/** Longest command, in UTF-16 code units. */
export const EXEC_COMMAND_LENGTH = 1_048_576;

/** `Upgrade` of a connection that becomes a raw stream of bytes to a TCP port. */
export const PORT_STREAM = 'tcp';
/** How a port is written in a path: digits alone, no sign, no leading zero. At most {@link HIGHEST_PORT}. */
export const PORT_TEXT = /^[1-9]\d{0,4}$/;
export const HIGHEST_PORT = 65_535;

/** `Upgrade` of a connection that becomes a terminal (terminal-frames.ts). */
export const TERMINAL_STREAM = 'berth-terminal';
/** Columns and rows of a terminal. */
export const TERMINAL_SIZE = { min: 1, max: 1_000 } as const;
/** What can be sent to the programs in the foreground of a terminal, as far as `berth` may send it to them. */
export const TERMINAL_SIGNALS = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGKILL', 'SIGUSR1', 'SIGUSR2', 'SIGTERM', 'SIGCONT', 'SIGTSTP'] as const;
export type TerminalSignal = (typeof TERMINAL_SIGNALS)[number];
