// How a command in a sandbox ended.
import { BerthError } from './transport/errors.ts';
import type { ExecResult } from './generated/raw/index.ts';

/** A command that ran to its end, whatever its exit code. */
export class CommandResult {
  /** 0 is a success; 128 + n when signal n ended it; 124 with {@link timedOut}. */
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Whether there was more output than is given; its end is. */
  readonly truncated: boolean;
  /** Whether it was ended because its time was up. */
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

  /** Whether the exit code is 0. */
  get ok(): boolean {
    return this.exitCode === 0;
  }

  /** The result itself when the exit code is 0; throws a {@link CommandFailed} otherwise. */
  orThrow(): this {
    if (!this.ok) throw new CommandFailed(this.#command, this);
    return this;
  }
}

const SHOWN_CHARACTERS = 500;

/** A command that ended with another exit code than 0, where that was asked to be an error. */
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

/** A command that runs: its result, and {@link orThrow} to have another exit code than 0 thrown. */
export interface RunningCommand extends Promise<CommandResult> {
  orThrow(): Promise<CommandResult>;
}

/** Gives the promise its `orThrow`. */
export function runningCommand(result: Promise<CommandResult>): RunningCommand {
  return Object.assign(result, { orThrow: async () => (await result).orThrow() });
}
