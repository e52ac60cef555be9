// Starts programs of the tenant with the keeper: as the tenant's user, in the code folder, each in
// its own POSIX session. What the keeper stores of one is in a folder on a tmpfs, until it is over.
import { chownSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { getSystemErrorName } from 'node:util';
import { messageOf } from '@berth/os/errors.ts';
import type { GuestConfig } from '../machine/config.ts';
import { NotStarted, type Keeper } from '../processes/keeper.ts';
import type { Launch } from '../processes/launch.ts';
import { environmentOf } from './environment.ts';
import { loginShell } from './users.ts';

/** Longest argument string of Linux (MAX_ARG_STRLEN), including its terminating NUL. */
const MAX_ARGUMENT_BYTES = 131_072;

/** The program was not started. `status`: HTTP status. */
export class CommandRefused extends Error {
  override readonly name = 'CommandRefused';
  readonly status: 400 | 429 | 500;

  constructor(status: 400 | 429 | 500, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

/** What runs: a command for /bin/sh, or the user's login shell. */
type Asked = Pick<Launch, 'hasInput' | 'keepBytes' | 'holds'> &
  Partial<Pick<Launch, 'terminal' | 'limitMs'>> & { command: string | null };

export interface Launched {
  id: string;
  /** Leader of the POSIX session, and of its first process group. */
  pid: number;
  folder: string;
}

export class Launcher {
  readonly keeper: Keeper;
  readonly #config: GuestConfig;
  readonly #folder: string;
  #next = 0;

  constructor(config: GuestConfig, keeper: Keeper) {
    this.keeper = keeper;
    this.#config = config;
    this.#folder = join(config.runFolder, 'commands');
  }

  /** Removes what an earlier daemon left. */
  recover(): void {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(this.#folder)) rmSync(join(this.#folder, name), { recursive: true });
  }

  /** Its events are those of the keeper. Rejects with {@link CommandRefused}. */
  async start({ command, ...asked }: Asked): Promise<Launched> {
    if (command?.includes('\0') === true)
      throw new CommandRefused(400, 'command contains a NUL character, which no shell command can');

    const { user, codeFolder } = this.#config;
    const id = `${process.pid}-${(this.#next += 1)}`;
    const folder = join(this.#folder, id);
    try {
      mkdirSync(folder, { mode: 0o700 });
      const launch = { ...asked, ...this.#program(command, folder, asked.terminal !== undefined) };
      const { uid, gid } = user;
      const owner = { uid, gid, groups: [gid] };
      const pid = await this.keeper.start(id, { ...launch, folder, cwd: codeFolder, user: owner, records: false });
      return { id, pid, folder };
    } catch (error) {
      rmSync(folder, { recursive: true, force: true });
      throw this.#notStarted(error);
    }
  }

  /** Drops all later output of the program, and what is stored of it. */
  discard({ id, folder }: Launched): void {
    this.keeper.discard(id);
    rmSync(folder, { recursive: true, force: true });
  }

  /** Closes output and terminal: programs that still write get SIGPIPE or SIGHUP. */
  forget({ id, folder }: Launched): void {
    this.keeper.forget(id);
    rmSync(folder, { recursive: true, force: true });
  }

  #program(
    command: string | null,
    folder: string,
    hasTerminal: boolean,
  ): Pick<Launch, 'program' | 'argv' | 'env' | 'hasScript'> {
    const { user, codeFolder } = this.#config;
    const env = environmentOf(user, codeFolder, hasTerminal ? 'xterm-256color' : 'dumb');
    if (command === null) {
      const shell = loginShell(user.uid);
      const name = shell.slice(shell.lastIndexOf('/') + 1);
      return {
        program: shell,
        argv: [`-${name}`],
        env: { ...env, SHELL: shell, COLORTERM: 'truecolor' },
        hasScript: false,
      };
    }
    const hasScript = Buffer.byteLength(command) >= MAX_ARGUMENT_BYTES;
    if (hasScript) this.#writeScript(join(folder, 'script'), command);
    return { program: '/bin/sh', argv: ['/bin/sh', '-c', hasScript ? '. /dev/fd/3' : command], env, hasScript };
  }

  /** A command too long for an argument: a file without a name, once the shell reads it. */
  #writeScript(path: string, command: string): void {
    const { uid, gid } = this.#config.user;
    writeFileSync(path, command, { mode: 0o400, flag: 'wx' });
    chownSync(path, uid, gid);
  }

  #notStarted(error: unknown): CommandRefused {
    const { codeFolder, user } = this.#config;
    const code =
      error instanceof NotStarted ? getSystemErrorName(-error.errno) : ((error as { code?: string }).code ?? '');
    const reasons: Record<string, string> = {
      ENOENT: `/bin/sh or the folder ${codeFolder} is missing`,
      ENOTDIR: `${codeFolder} is not a folder`,
      EACCES: `user ${user.name} may not run /bin/sh or enter ${codeFolder}`,
      EAGAIN: 'the machine has no room for another process',
      ENOMEM: 'the machine has no memory for another process',
      EMFILE: 'too many files are open',
      ENFILE: 'too many files are open',
      ENOSPC: 'no space is left for the command',
    };
    return new CommandRefused(500, `the command could not be started: ${reasons[code] ?? messageOf(error)}`, {
      cause: error,
    });
  }
}
