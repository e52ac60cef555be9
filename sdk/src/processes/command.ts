// Results of commands in sandboxes.
import { BerthError } from '../transport/errors.ts';
import type { CallOptions } from '../transport/transport.ts';
import type { ExecResult } from '../generated/raw/index.ts';

/** Options of every command. */
export interface CommandOptions extends CallOptions {
  /** Working directory, by default `/code`. A relative path is relative to `/code`. */
  cwd?: string;
  /** Environment variables, in addition to those of every command. */
  env?: Readonly<Record<string, string>>;
  /** User of the sandbox that runs the command, such as `root`. */
  user?: string;
}

/** Options of `sandbox.exec`. */
export interface ExecOptions extends CommandOptions {
  /** Timeout of the command in seconds: 1 to 600, by default 120. */
  timeoutSeconds?: number;
  /** Standard input, by default empty; at most 65,536 characters. */
  stdin?: string;
  /**
   * Called with the output while the command runs, in order, and awaited. The result has the last
   * 64 KiB of each, and `truncated` also if a slow caller missed some. The command survives lost
   * connections; `signal` and `timeoutMs` kill it.
   */
  onStdout?: (text: string) => unknown;
  onStderr?: (text: string) => unknown;
}

/** Result of a command that exited, with any exit code. */
export class CommandResult {
  /** 0 on success; 128 + n if signal n killed it; 124 with {@link timedOut}. */
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Whether only the end of the output is included. */
  readonly truncated: boolean;
  /** Whether the command was killed at its timeout. */
  readonly timedOut: boolean;
  readonly #command: string;

  constructor(command: string, { exitCode, stdout, stderr, truncated, timedOut }: ExecResult) {
    this.#command = command;
    this.exitCode = exitCode;
    this.stdout = stdout;
    this.stderr = stderr;
    this.truncated = truncated;
    this.timedOut = timedOut;
  }

  get ok(): boolean {
    return this.exitCode === 0;
  }

  /** Returns the result if the exit code is 0; otherwise throws {@link CommandFailed}. */
  orThrow(): this {
    if (!this.ok) throw new CommandFailed(this.#command, this);
    return this;
  }
}

const SHOWN_CHARACTERS = 500;

/** A command that exited with another code than 0, thrown by `orThrow`. */
export class CommandFailed extends BerthError {
  override readonly name = 'CommandFailed';
  readonly result: CommandResult;

  constructor(command: string, result: CommandResult) {
    const shown = command.length > SHOWN_CHARACTERS ? `${command.slice(0, SHOWN_CHARACTERS)}…` : command;
    const how = result.timedOut ? 'timed out' : `exited with ${result.exitCode}`;
    const said = (result.stderr || result.stdout).trimEnd().slice(-SHOWN_CHARACTERS);
    super(`the command \`${shown}\` ${how}${said === '' ? '' : `: ${said}`}`, { code: 'command_failed' });
    this.result = result;
  }
}

/** A promise of the result; {@link orThrow} rejects for another exit code than 0. */
export interface RunningCommand extends Promise<CommandResult> {
  orThrow(): Promise<CommandResult>;
}

export function runningCommand(result: Promise<CommandResult>): RunningCommand {
  return Object.assign(result, { orThrow: async () => (await result).orThrow() });
}
