// Starts programs of the tenant with the keeper: as the tenant's user, in the code folder, each in
// its own POSIX session. What the keeper stores of one is in a folder on a tmpfs, until it is over.
import { chownSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { getSystemErrorName } from 'node:util';
import { messageOf } from '@berth/os/errors.ts';
import type { GuestRunRequest } from '@berth/protocol/calls/exec.ts';
import type { CommandErrorCode } from '@berth/protocol/guest-limits.ts';
import type { GuestConfig, GuestUser } from '../machine/config.ts';
import { NotStarted, type Keeper } from './keeper.ts';
import type { Launch } from './launch.ts';
import { environmentOf, variablesOf } from './environment.ts';
import { removeFolder } from './stream-files.ts';
import { findUser, groupsOf, loginShell } from './users.ts';

/** Longest argument string of Linux (MAX_ARG_STRLEN), including its terminating NUL. */
const MAX_ARGUMENT_BYTES = 131_072;

/** The program was not started. `status`: HTTP status. */
export class CommandRefused extends Error {
  override readonly name = 'CommandRefused';
  readonly status: 400 | 429 | 500;
  readonly code: CommandErrorCode | undefined;

  constructor(
    status: 400 | 429 | 500,
    message: string,
    { code, ...options }: ErrorOptions & { code?: CommandErrorCode } = {},
  ) {
    super(message, options);
    this.status = status;
    this.code = code;
  }
}

/** A start: a command for /bin/sh, or the user's login shell. */
type Asked = Pick<Launch, 'hasInput' | 'keepBytes' | 'holds'> &
  Partial<Pick<Launch, 'terminal' | 'limitMs'>> & {
    command: string | null;
    /** Instead of a command. */
    argv?: readonly string[] | undefined;
    options?: CommandOptions;
    /** Where a process that outlives this daemon is stored. */
    place?: { id: string; folder: string };
  };

/** Options of a command; see the call `run`. */
export type CommandOptions = Pick<GuestRunRequest, 'cwd' | 'env' | 'user'>;

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
    for (const name of readdirSync(this.#folder)) removeFolder(join(this.#folder, name));
  }

  /** Its events are those of the keeper. Rejects with {@link CommandRefused}. */
  async start({ command, argv, options = {}, place, ...asked }: Asked): Promise<Launched> {
    if ([command, ...(argv ?? []), options.cwd, ...(options.env ?? [])].some((text) => text?.includes('\0')))
      throw new CommandRefused(400, 'command, cwd or env contains a NUL character, which no program can be given');

    const user = this.#userOf(options);
    const cwd = resolve(this.#config.codeFolder, options.cwd ?? '.');
    const id = place?.id ?? `${process.pid}-${(this.#next += 1)}`;
    const folder = place?.folder ?? join(this.#folder, id);
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const own = environmentOf(user, cwd, asked.terminal === undefined ? 'dumb' : 'xterm-256color');
      const env = { ...own, ...variablesOf(options.env) };
      const owner = { ...user, groups: groupsOf(user, this.#config.user) };
      const launch = { folder, cwd, user: owner, records: place !== undefined };
      const program = programOf({ command, argv }, folder, user, env);
      const pid = await this.keeper.start(id, { ...asked, ...launch, env, ...program });
      return { id, pid, folder };
    } catch (error) {
      removeFolder(folder);
      throw this.#notStarted(error, options, argv !== undefined);
    }
  }

  /** Drops all later output of the program, and what is stored of it. */
  discard({ id, folder }: Launched): void {
    this.keeper.discard(id);
    removeFolder(folder);
  }

  /** Closes output and terminal: programs that still write get SIGPIPE or SIGHUP. */
  forget({ id, folder }: Launched): void {
    this.keeper.forget(id);
    removeFolder(folder);
  }

  #userOf({ user: name }: CommandOptions): GuestUser {
    const { user } = this.#config;
    if (name === undefined || name === user.name) return user;
    const found = findUser(name);
    if (found === null) throw new CommandRefused(400, 'there is no such user', { code: 'command_user_unknown' });
    return found;
  }

  #notStarted(error: unknown, { cwd }: CommandOptions, namesProgram: boolean): CommandRefused {
    const { codeFolder, user } = this.#config;
    if (cwd !== undefined && error instanceof NotStarted && error.stage === 'cwd')
      return new CommandRefused(400, 'the working directory cannot be entered', { code: 'command_cwd_invalid' });

    const code =
      error instanceof NotStarted ? getSystemErrorName(-error.errno) : ((error as { code?: string }).code ?? '');
    if (namesProgram && ['ENOENT', 'EACCES', 'ENOTDIR', 'ENOEXEC', 'EISDIR', 'ELOOP'].includes(code))
      return new CommandRefused(400, 'there is no such program', { code: 'command_program_invalid' });

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

function programOf(
  { command, argv }: Pick<Asked, 'command' | 'argv'>,
  folder: string,
  user: GuestUser,
  env: Record<string, string>,
): ProgramParts {
  if (argv !== undefined) return { program: argv[0] ?? '', argv, hasScript: false };
  return command === null ? loginShellOf(user, env) : shellCommand(command, folder, user);
}

type ProgramParts = Pick<Launch, 'program' | 'argv' | 'hasScript'>;

function loginShellOf({ uid }: GuestUser, env: Record<string, string>): ProgramParts & Pick<Launch, 'env'> {
  const program = loginShell(uid);
  const argv = [`-${program.slice(program.lastIndexOf('/') + 1)}`];
  return { program, argv, env: { ...env, SHELL: program, COLORTERM: 'truecolor' }, hasScript: false };
}

/** A command too long for an argument is in a file, without a name once the shell reads it. */
function shellCommand(command: string, folder: string, { uid, gid }: GuestUser): ProgramParts {
  const hasScript = Buffer.byteLength(command) >= MAX_ARGUMENT_BYTES;
  if (hasScript) {
    const path = join(folder, 'script');
    writeFileSync(path, command, { mode: 0o400, flag: 'wx' });
    chownSync(path, uid, gid);
  }
  return { program: '/bin/sh', argv: ['/bin/sh', '-c', hasScript ? '. /dev/fd/3' : command], hasScript };
}
