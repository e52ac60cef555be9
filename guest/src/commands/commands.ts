// Starts the tenant's commands: `/bin/sh -c` in the code folder as the tenant's user, each in its
// own POSIX session and process group; either for a response, or with pipes to a caller. Limits the
// running commands, and the outputs still held open by their background processes.
import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { chownSync, closeSync, mkdirSync, openSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GuestExecRequest } from '@berth/protocol/calls/exec.ts';
import { messageOf } from '@berth/os/errors.ts';
import { environmentOf } from './environment.ts';
import { AttachedCommand } from './attached.ts';
import { RunningCommand } from './running.ts';
import type { GuestConfig } from '../machine/config.ts';
import type { InputPipes } from './input-pipes.ts';
import type { OomProtection } from '../machine/oom-protection.ts';
import type { OutputPipe } from './output-pipe.ts';
import { Output } from './output.ts';
import type { PipeStore } from './pipes.ts';
import type { PosixSessions } from './sessions.ts';
import { StartingPipes } from './starting-pipes.ts';

/** Longest argument string of Linux (MAX_ARG_STRLEN), including its terminating NUL. */
const MAX_ARGUMENT_BYTES = 131_072;

/** The command was not started. `status`: HTTP status. */
export class CommandRefused extends Error {
  override readonly name = 'CommandRefused';
  readonly status: 400 | 429 | 500;

  constructor(status: 400 | 429 | 500, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

/** Sources of the pipes of commands. */
interface CommandStores {
  inputs: InputPipes;
  outputs: PipeStore;
}

export class Commands {
  readonly #config: GuestConfig;
  readonly #stores: CommandStores;
  readonly #options: SpawnOptions;
  readonly #scriptFolder: string;
  readonly #sessions: PosixSessions;
  readonly #running = new Set<RunningCommand | AttachedCommand>();
  readonly #leftOpen = new Set<OutputPipe>();
  readonly #protection: OomProtection | undefined;
  #starting = 0;
  #scripts = 0;

  /** `protection`: OOM protection of this process, which commands do not inherit. */
  constructor(config: GuestConfig, stores: CommandStores, sessions: PosixSessions, protection?: OomProtection) {
    this.#config = config;
    this.#sessions = sessions;
    this.#protection = protection;
    this.#stores = stores;
    this.#scriptFolder = join(config.runFolder, 'scripts');
    rmSync(this.#scriptFolder, { recursive: true, force: true });
    mkdirSync(this.#scriptFolder, { mode: 0o700 });
    const { user } = config;
    this.#options = {
      cwd: config.codeFolder,
      env: environmentOf(user, config.codeFolder, 'dumb'),
      // A new POSIX session, and with it a process group whose id is the shell's pid.
      detached: true,
      // Setting uid and gid also drops the supplementary groups.
      ...(process.getuid?.() === user.uid ? {} : { uid: user.uid, gid: user.gid }),
    };
  }

  /** Rejects with {@link CommandRefused}, or with the signal's reason; nothing runs then. */
  start({ command, timeoutSeconds }: GuestExecRequest, signal: AbortSignal): Promise<RunningCommand> {
    return this.#begin(command, async (pipes) => {
      const stdout = await opened(pipes.output());
      const stderr = await opened(pipes.output());
      signal.throwIfAborted();
      const child = await this.#spawn(command, ['ignore', ...pipes.childFds]);
      const running = new RunningCommand(child, new Output(stdout), new Output(stderr), timeoutSeconds);
      this.#watch(running, running.result, [stdout, stderr]);
      return running;
    });
  }

  /** Starts a command for a connected caller. Rejects as {@link start} does. */
  attach(command: string, signal: AbortSignal): Promise<AttachedCommand> {
    return this.#begin(command, async (pipes) => {
      const stdin = await opened(pipes.input());
      const stdout = await opened(pipes.output());
      const stderr = await opened(pipes.output());
      signal.throwIfAborted();
      const child = await this.#spawn(command, pipes.childFds);
      const attached = new AttachedCommand(child, { stdin, stdout, stderr }, this.#sessions);
      this.#watch(attached, attached.gone, [stdout, stderr]);
      return attached;
    });
  }

  /** Kills every running command. */
  killAll(): void {
    for (const command of this.#running) command.kill();
  }

  async #begin<T>(command: string, begin: (pipes: StartingPipes) => Promise<T>): Promise<T> {
    if (command.includes('\0'))
      throw new CommandRefused(400, 'command contains a NUL character, which no shell command can');

    const { maxRunning } = this.#config;
    if (this.#running.size + this.#starting >= maxRunning) {
      throw new CommandRefused(
        429,
        `${maxRunning} commands are running in this machine already; try again when one has ended`,
      );
    }

    this.#starting += 1;
    const pipes = new StartingPipes(this.#stores.inputs, this.#stores.outputs);
    try {
      return await begin(pipes);
    } catch (error) {
      pipes.closeKept();
      throw error;
    } finally {
      pipes.closeChildEnds();
      this.#starting -= 1;
    }
  }

  #watch(command: RunningCommand | AttachedCommand, over: Promise<unknown>, outputs: readonly OutputPipe[]): void {
    this.#running.add(command);
    void over.then(() => {
      this.#running.delete(command);
      outputs.forEach((output) => this.#releaseOutput(output));
    });
  }

  #releaseOutput(output: OutputPipe): void {
    if (output.ended) return;

    this.#leftOpen.add(output);
    output.onEnded(() => this.#leftOpen.delete(output));
    const [oldest] = this.#leftOpen;
    if (this.#leftOpen.size > this.#config.maxLeftOpen && oldest !== undefined) oldest.close();
  }

  async #spawn(command: string, stdio: readonly ('ignore' | number)[]): Promise<ChildProcess> {
    let scriptFd: number | undefined;
    let child: ChildProcess;
    this.#protection?.remove();
    try {
      if (Buffer.byteLength(command) >= MAX_ARGUMENT_BYTES) scriptFd = this.#scriptFile(command);

      child = spawn('/bin/sh', ['-c', scriptFd === undefined ? command : '. /dev/fd/3'], {
        ...this.#options,
        stdio: [...stdio, ...(scriptFd === undefined ? [] : [scriptFd])],
      });
    } catch (error) {
      throw this.#notStarted(error);
    } finally {
      this.#protection?.restore();
      if (scriptFd !== undefined) closeSync(scriptFd);
    }
    if (child.pid === undefined)
      throw this.#notStarted(await new Promise<Error>((resolve) => child.once('error', resolve)));

    child.on('error', (error) => console.error('a command reported', error));
    return child;
  }

  /** Writes a command too long for an argument to an unnamed file, which the shell reads. */
  #scriptFile(command: string): number {
    const path = join(this.#scriptFolder, String(this.#scripts++));
    const { uid, gid } = this.#config.user;
    writeFileSync(path, command, { mode: 0o400, flag: 'wx' });
    try {
      chownSync(path, uid, gid);
      return openSync(path, 'r');
    } finally {
      unlinkSync(path);
    }
  }

  #notStarted(error: unknown): CommandRefused {
    const { codeFolder, user } = this.#config;
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
    const code = (error as NodeJS.ErrnoException).code ?? '';
    return new CommandRefused(500, `the command could not be started: ${reasons[code] ?? messageOf(error)}`, {
      cause: error,
    });
  }
}

async function opened<T>(pipe: Promise<T>): Promise<T> {
  try {
    return await pipe;
  } catch (error) {
    throw new CommandRefused(500, `no pipe could be made for the command: ${messageOf(error)}`, { cause: error });
  }
}
