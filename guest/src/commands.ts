// Starts the tenant's commands: `/bin/sh -c` in the code folder as the tenant's user, each in a session and process group of its own.
// Owns how many run at once and how many outputs are still held by what they left running.
import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { chownSync, closeSync, mkdirSync, openSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GuestExecRequest } from '@berth/protocol/guest.ts';
import { RunningCommand } from './command.ts';
import type { GuestConfig } from './config.ts';
import type { OomProtection } from './oom-protection.ts';
import { Output } from './output.ts';
import type { Pipe, PipeStore } from './pipes.ts';

/** Longest string that Linux takes as one argument (MAX_ARG_STRLEN), with its end mark. */
const MAX_ARGUMENT_BYTES = 131_072;

/** A command that was not started. `status` is the HTTP status for it. */
export class CommandRefused extends Error {
  override readonly name = 'CommandRefused';
  readonly status: 400 | 429 | 500;

  constructor(status: 400 | 429 | 500, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

export class Commands {
  readonly #config: GuestConfig;
  readonly #pipes: PipeStore;
  readonly #options: SpawnOptions;
  readonly #scriptFolder: string;
  readonly #running = new Set<RunningCommand>();
  readonly #leftOpen = new Set<Output>();
  readonly #protection: OomProtection | undefined;
  #starting = 0;
  #scripts = 0;

  /** `protection`: that of this process, which commands do not inherit. */
  constructor(config: GuestConfig, pipes: PipeStore, protection?: OomProtection) {
    this.#config = config;
    this.#protection = protection;
    this.#pipes = pipes;
    this.#scriptFolder = join(config.runFolder, 'scripts');
    rmSync(this.#scriptFolder, { recursive: true, force: true });
    mkdirSync(this.#scriptFolder, { mode: 0o700 });
    const { user } = config;
    this.#options = {
      cwd: config.codeFolder,
      env: {
        HOME: user.home,
        USER: user.name,
        LOGNAME: user.name,
        SHELL: '/bin/bash',
        PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
        LANG: 'C.UTF-8',
        TERM: 'dumb',
        PWD: config.codeFolder,
      },
      // A session of its own, and with it a process group whose id is the shell's pid.
      detached: true,
      // Setting them also empties the supplementary groups.
      ...(process.getuid?.() === user.uid ? {} : { uid: user.uid, gid: user.gid }),
    };
  }

  /** Starts a command. Rejects with {@link CommandRefused}, or with the signal's reason; nothing runs then. */
  async start(request: GuestExecRequest, signal: AbortSignal): Promise<RunningCommand> {
    if (request.command.includes('\0')) {
      throw new CommandRefused(400, 'command contains a NUL character, which no shell command can');
    }
    const { maxRunning } = this.#config;
    if (this.#running.size + this.#starting >= maxRunning) {
      throw new CommandRefused(429, `${maxRunning} commands are running in this machine already; try again when one has ended`);
    }
    this.#starting += 1;
    const outputs: Output[] = [];
    const writeFds: number[] = [];
    try {
      for (let count = 0; count < 2; count += 1) {
        const pipe = await this.#takePipe();
        writeFds.push(pipe.writeFd);
        outputs.push(new Output(pipe.readFd));
      }
      signal.throwIfAborted();
      const child = await this.#spawn(request.command, writeFds);
      return this.#watch(child, outputs as [Output, Output], request.timeoutSeconds);
    } catch (error) {
      for (const output of outputs) {
        output.close();
      }
      throw error;
    } finally {
      // From here on only the command and what it starts can write.
      for (const fd of writeFds) {
        closeSync(fd);
      }
      this.#starting -= 1;
    }
  }

  /** Ends every command under way. */
  killAll(): void {
    for (const command of this.#running) {
      command.kill();
    }
  }

  #watch(child: ChildProcess, [stdout, stderr]: [Output, Output], timeoutSeconds: number): RunningCommand {
    const command = new RunningCommand(child, stdout, stderr, timeoutSeconds);
    this.#running.add(command);
    void command.result.then(() => {
      this.#running.delete(command);
      this.#leave(stdout);
      this.#leave(stderr);
    });
    return command;
  }

  #leave(output: Output): void {
    if (output.ended) {
      return;
    }
    this.#leftOpen.add(output);
    output.onEnded(() => this.#leftOpen.delete(output));
    const [oldest] = this.#leftOpen;
    if (this.#leftOpen.size > this.#config.maxLeftOpen && oldest !== undefined) {
      oldest.close();
    }
  }

  async #takePipe(): Promise<Pipe> {
    try {
      return await this.#pipes.take();
    } catch (error) {
      throw new CommandRefused(500, `no pipe could be made for the command's output: ${messageOf(error)}`, { cause: error });
    }
  }

  async #spawn(command: string, writeFds: readonly number[]): Promise<ChildProcess> {
    let scriptFd: number | undefined;
    let child: ChildProcess;
    this.#protection?.lift();
    try {
      if (Buffer.byteLength(command) >= MAX_ARGUMENT_BYTES) {
        scriptFd = this.#scriptFile(command);
      }
      child = spawn('/bin/sh', ['-c', scriptFd === undefined ? command : '. /dev/fd/3'], {
        ...this.#options,
        stdio: ['ignore', ...writeFds, ...(scriptFd === undefined ? [] : [scriptFd])],
      });
    } catch (error) {
      throw this.#notStarted(error);
    } finally {
      this.#protection?.restore();
      if (scriptFd !== undefined) {
        closeSync(scriptFd);
      }
    }
    if (child.pid === undefined) {
      throw this.#notStarted(await new Promise<Error>((resolve) => child.once('error', resolve)));
    }
    child.on('error', (error) => console.error('a command reported', error));
    return child;
  }

  /** A command that is too long for an argument is read by the shell from a file without a name. */
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
    return new CommandRefused(500, `the command could not be started: ${reasons[code] ?? messageOf(error)}`, { cause: error });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
