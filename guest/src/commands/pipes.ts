// Real pipes for the output of commands. The pipes of Node's spawn are sockets, which `echo x >
// /dev/stderr` cannot open (ENXIO). Each output gets a FIFO instead, made ahead of time in batches,
// unlinked when taken and never reused.
import { spawn } from 'node:child_process';
import { chownSync, closeSync, constants, mkdirSync, openSync, rmSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';

const FULL = 256;
/** Enough for the outputs of 64 simultaneous commands. */
const LOW = 128;
const MKFIFO_DEADLINE_MS = 20_000;

/** Both ends of a pipe, open. The taker closes both. */
interface Pipe {
  /** Non-blocking. */
  readFd: number;
  /** Blocking, as programs expect of their output. */
  writeFd: number;
}

/** Store of pipes owned by one user: the owner of a FIFO may reopen it as /dev/stdout. */
export class PipeStore {
  readonly #folder: string;
  readonly #owner: { uid: number; gid: number };
  #names: string[] = [];
  #next = 0;
  #refill: Promise<void> | undefined;

  /** Recreates `folder`, accessible to this user alone. */
  constructor(folder: string, owner: { uid: number; gid: number }) {
    this.#folder = folder;
    this.#owner = owner;
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }

  /** Resolves when the store is full. */
  async full(): Promise<void> {
    while (this.#names.length < FULL) await this.#fill();
  }

  /** Takes one pipe; waits for a refill when the store is empty. Rejects when none can be made. */
  async take(): Promise<Pipe> {
    for (;;) {
      const name = this.#names.pop();
      if (this.#names.length < LOW) {
        const filled = this.#fill();
        if (name === undefined) {
          await filled;
          continue;
        }
        // The caller has its pipe. A later caller that finds the store empty retries and gets the
        // error.
        filled.catch((error: unknown) => console.error('making pipes ahead failed:', error));
      }
      if (name !== undefined) return this.#open(name);
    }
  }

  #open(name: string): Pipe {
    const path = join(this.#folder, name);
    const readFd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      // Does not block: a reader is open.
      return { readFd, writeFd: openSync(path, constants.O_WRONLY) };
    } catch (error) {
      closeSync(readFd);
      throw error;
    } finally {
      unlinkSync(path);
    }
  }

  #fill(): Promise<void> {
    this.#refill ??= this.#make(FULL - this.#names.length).finally(() => {
      this.#refill = undefined;
    });
    return this.#refill;
  }

  async #make(count: number): Promise<void> {
    const names = Array.from({ length: count }, () => String(this.#next++));
    await mkfifo(this.#folder, names);
    for (const name of names) chownSync(join(this.#folder, name), this.#owner.uid, this.#owner.gid);

    this.#names.unshift(...names);
  }
}

function mkfifo(folder: string, names: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn('mkfifo', ['-m', '600', ...names], {
      cwd: folder,
      stdio: 'ignore',
      timeout: MKFIFO_DEADLINE_MS,
      killSignal: 'SIGKILL',
    });
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      if (code === 0) resolve();
      else reject(new Error(`mkfifo in ${folder} ended with ${signal ?? `exit code ${code}`}`));
    });
  });
}
