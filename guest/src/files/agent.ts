// Keeps the helper process for file calls (program.pl) running, and opens connections to it,
// one a call. It is started ahead of time, before the template's snapshot. Knows no call.
import { spawn } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { FILE_CALL_SECONDS } from '@berth/protocol/guest-limits.ts';
import type { GuestConfig } from '../machine/config.ts';
import { fileProgramArguments, type FileProgramOptions } from './program.ts';
import type { OomProtection } from '../machine/oom-protection.ts';

const NOBODY_LISTENS: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOENT']);

export class FileAgent {
  readonly #program: string;
  readonly #options: FileProgramOptions;
  readonly #protection: OomProtection | undefined;
  #listening: Promise<void> | undefined;

  /**
   * `program`: the text of program.pl. `protection`: OOM protection of the daemon, which the helper
   * does not inherit.
   */
  constructor(
    { runFolder, user }: Pick<GuestConfig, 'runFolder' | 'user'>,
    program: string,
    protection?: OomProtection,
  ) {
    this.#program = program;
    this.#options = { socket: join(runFolder, 'files.sock'), uid: user.uid, gid: user.gid, seconds: FILE_CALL_SECONDS };
    this.#protection = protection;
  }

  /**
   * Starts it unless it runs, and resolves when it takes calls. Rejects when it ends before that.
   */
  start(): Promise<void> {
    if (this.#listening === undefined) {
      const listening = this.#spawn(() => this.#forget(listening));
      this.#listening = listening;
      listening.catch(() => this.#forget(listening));
    }
    return this.#listening;
  }

  /** A connection for one call, the caller's to close. */
  async connect(): Promise<Socket> {
    const listening = this.start();
    await listening;
    try {
      return await dial(this.#options.socket);
    } catch (error) {
      if (!NOBODY_LISTENS.has((error as NodeJS.ErrnoException).code ?? '')) throw error;

      // It has ended; the news of that may be on its way still.
      this.#forget(listening);
      await this.start();
      return dial(this.#options.socket);
    }
  }

  #forget(listening: Promise<void>): void {
    if (this.#listening === listening) this.#listening = undefined;
  }

  async #spawn(onGone: () => void): Promise<void> {
    this.#protection?.lift();
    let child;
    try {
      child = spawn('perl', ['-e', this.#program, ...fileProgramArguments(this.#options)], {
        // It ends when its stdin does, with this process at the latest.
        stdio: ['pipe', 'pipe', 'inherit'],
        cwd: '/',
        env: { PATH: process.env['PATH'], LC_ALL: 'C' },
      });
    } finally {
      this.#protection?.restore();
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const gone = (error: Error): void => {
      onGone();
      reject(error);
    };
    child.once('error', gone);
    child.once('exit', (code, signal) =>
      gone(new Error(`the helper for file calls ended with ${signal ?? `exit code ${code}`}`)),
    );
    child.stdin.on('error', gone);
    child.stdout.once('data', () => resolve());
    await promise;
  }
}

function dial(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path });
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject);
      resolve(socket);
    });
  });
}
