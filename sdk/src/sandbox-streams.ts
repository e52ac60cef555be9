// Streams of a sandbox. Their modules are loaded on first use.
import type { Calls } from './calls/calls.ts';
import { BerthError } from './transport/errors.ts';
import { WEBSOCKET_PATHS } from './generated/contract-tables.ts';
import { TERMINAL_DEFAULT_SIZE, WAKE_ON_USE_WAIT_MS } from './generated/limits.ts';
import type { CallOptions } from './transport/transport.ts';
import type { Connection } from './streams/connection.ts';
import type { SandboxCommand, SandboxTerminal, TerminalSize } from './streams/program.ts';
import type { SandboxTunnel } from './streams/tunnel.ts';
import type { CommandOptions } from './processes/command.ts';
import type { WaitForPortOptions } from './processes/wait-for-port.ts';

/** `timeoutMs` limits the opening, by default 90 s; `signal` also closes an open stream. */
export type StreamOptions = CallOptions;

/** `cwd`, `env` and `user` require `command`: a login shell has no such options. */
export interface TerminalOptions extends CommandOptions, Partial<TerminalSize> {
  /** Runs with /bin/sh in /code instead of the login shell. */
  command?: string;
  /**
   * The agent's own program instead of the login shell, started if necessary. Everyone shares one
   * terminal, and closing it leaves the program running. Not with `command`.
   */
  agent?: boolean;
  /** False refuses a sandbox that is not awake, also with `wakeOnUse`. Default: true. */
  mayWake?: boolean;
}

/** Includes the time of a wake. */
const OPEN_TIMEOUT_MS = WAKE_ON_USE_WAIT_MS + 30_000;
/** Request headers are limited to 16 KiB. */
const COMMAND_URL_BYTES = 14_336;

/** Connections to an awake sandbox, or to one whose project has `wakeOnUse`. */
export class SandboxStreams {
  readonly id: string;
  readonly #calls: Calls;

  /** Constructed by the SDK. */
  constructor(calls: Calls, sandboxId: string) {
    this.#calls = calls;
    this.id = sandboxId;
  }

  /** Opens a terminal with the login shell, a command or the agent. */
  async terminal({
    cols,
    rows,
    agent = false,
    mayWake = true,
    ...options
  }: TerminalOptions = {}): Promise<SandboxTerminal> {
    const size = { cols: cols ?? TERMINAL_DEFAULT_SIZE.cols, rows: rows ?? TERMINAL_DEFAULT_SIZE.rows };
    const sized = { ...commandQuery(options), cols: String(size.cols), rows: String(size.rows) };
    const query = { ...sized, ...(agent ? { agent: 'true' } : {}), ...(mayWake ? {} : { mayWake: 'false' }) };
    const { SandboxTerminal } = await import('./streams/program.ts');
    return await this.#open('terminal', 'the terminal', query, options, (one) => new SandboxTerminal(one));
  }

  /**
   * Runs a command with /bin/sh, by default in /code, with stdin, stdout and stderr as streams. The
   * command with its options is limited to 14 KiB in a URL (`command_too_long`).
   */
  async command(command: string, options: CommandOptions = {}): Promise<SandboxCommand> {
    const query = { ...commandQuery({ ...options, command }), tty: 'false' };
    const { SandboxCommand } = await import('./streams/program.ts');
    const what = 'the connection to the command';
    return await this.#open('terminal', what, query, options, (one) => new SandboxCommand(one));
  }

  /**
   * Opens a TCP connection to a port. Rejects with `port_refused` if nothing listens there, and
   * with `port_forbidden` for the port of Berth's guest daemon.
   */
  async connect(port: number, options: StreamOptions = {}): Promise<SandboxTunnel> {
    const query = { port: String(port) };
    const { SandboxTunnel } = await import('./streams/tunnel.ts');
    return await this.#open('tunnel', 'the tunnel', query, options, (one) => new SandboxTunnel(one));
  }

  /**
   * Resolves once a program accepts connections on the port, by default within 60 s. Attempts are
   * connections that are closed at once, after 100 ms, then less often, at most every 2 s. With
   * `process`, rejects with `process_exited` when that process has ended.
   */
  async waitForPort(port: number, options: WaitForPortOptions = {}): Promise<void> {
    const { waitForPort } = await import('./processes/wait-for-port.ts');
    const awaited = `port ${port} of sandbox ${this.id}`;
    await waitForPort(awaited, (limits) => this.connect(port, limits), options);
  }

  async #open<T>(
    kind: 'terminal' | 'tunnel',
    what: string,
    query: Readonly<Record<string, string>>,
    { signal, timeoutMs = OPEN_TIMEOUT_MS }: StreamOptions,
    make: (connection: Connection) => T,
  ): Promise<T> {
    const path = WEBSOCKET_PATHS[kind].replace('{sandboxId}', encodeURIComponent(this.id));
    const { openConnection } = await import('./streams/open.ts');
    const limits = { signal, timeoutMs };
    return await openConnection(this.#calls.endpoint, { what, path, query }, limits, make);
  }
}

function commandQuery({ command, cwd, user, env = {} }: TerminalOptions): Readonly<Record<string, string>> {
  const fields = Object.entries({ command, cwd, user }).filter(([, value]) => value !== undefined);
  const variables = Object.entries(env).map(([name, value]) => [`env[${name}]`, value]);
  const query = Object.fromEntries([...fields, ...variables]) as Record<string, string>;
  const bytes = new URLSearchParams(query).toString().length;
  if (bytes <= COMMAND_URL_BYTES) return query;
  const what = `command${Object.keys(query).length > 1 ? ' with its options' : ''}`;
  throw new BerthError(
    `${what} too long: ${bytes} bytes URL-encoded, limit ${COMMAND_URL_BYTES}. Pass the rest to a shell as stdin`,
    { code: 'command_too_long' },
  );
}
