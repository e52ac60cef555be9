// Keeps the helper process for file calls (program.pl) running, and opens one connection to it per
// call. Started before the template's snapshot. Knows no calls.
import { spawn } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { FILE_CALL_SECONDS } from '@berth/protocol/guest-limits.ts';
import type { GuestConfig } from '../machine/config.ts';
import { fileProgramArguments, type FileProgramOptions } from './program.ts';
import type { OomProtection } from '../machine/oom-protection.ts';

const NOT_LISTENING: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOENT']);

export class FileAgent {
  readonly #program: string;
  readonly #options: FileProgramOptions;
  readonly #protection: OomProtection | undefined;
  #listening: Promise<void> | undefined;

  /** `program`: the text of the Perl files. `protection`: not inherited. */
  constructor(
    { runFolder, user }: Pick<GuestConfig, 'runFolder' | 'user'>,
    program: string,
    protection?: OomProtection,
  ) {
    this.#program = program;
    this.#options = { socket: join(runFolder, 'files.sock'), uid: user.uid, gid: user.gid, seconds: FILE_CALL_SECONDS };
    this.#protection = protection;
  }

  /** Resolves when the helper accepts calls. Rejects when it exits before that. */
  start(): Promise<void> {
    if (this.#listening === undefined) {
      const listening = this.#spawn(() => this.#forget(listening));
      this.#listening = listening;
      listening.catch(() => this.#forget(listening));
    }
    return this.#listening;
  }

  /** Opens a connection for one call; the caller closes it. */
  async connect(): Promise<Socket> {
    const listening = this.start();
    await listening;
    try {
      return await dial(this.#options.socket);
    } catch (error) {
      if (!NOT_LISTENING.has((error as NodeJS.ErrnoException).code ?? '')) throw error;

      // The helper has exited; its exit event may not have arrived yet.
      this.#forget(listening);
      await this.start();
      return dial(this.#options.socket);
    }
  }

  #forget(listening: Promise<void>): void {
    if (this.#listening === listening) this.#listening = undefined;
  }

  async #spawn(onGone: () => void): Promise<void> {
    this.#protection?.remove();
    let child;
    try {
      child = spawn('perl', ['-e', this.#program, ...fileProgramArguments(this.#options)], {
        // The helper exits when its stdin closes, at the latest with this process.
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
