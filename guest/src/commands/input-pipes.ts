// Pipes for the input of commands, without a name and both ends open, made ahead of time. A FIFO
// will not do: who opens that again as /dev/stdin once all was written waits for a writer for ever;
// and what Node makes are sockets, which cannot be opened again at all. Perl (make-pipes.pl) makes
// them, for Node cannot, and this process opens them from there.
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, constants, fchownSync, openSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';

/** Each is two open files. */
const FULL = 64;
const LOW = 32;
const MAKE_DEADLINE_MS = 20_000;

/** Ends of one pipe, both open. Who takes it closes both. Each blocks. */
export interface InputPipe {
  readFd: number;
  writeFd: number;
}

/** A store of pipes that belong to one user: who owns a pipe may open it again as /dev/stdin. */
export class InputPipes {
  readonly #owner: { uid: number; gid: number };
  readonly #program: string;
  #pipes: InputPipe[] = [];
  #refill: Promise<void> | undefined;

  /** `program`: the text of make-pipes.pl. */
  constructor(owner: { uid: number; gid: number }, program: string) {
    this.#owner = owner;
    this.#program = program;
  }

  /** Resolves when the store is full. */
  async full(): Promise<void> {
    while (this.#pipes.length < FULL) await this.#fill();
  }

  /**
   * Takes one pipe; waits for more to be made when there is none. Rejects when none can be made.
   */
  async take(): Promise<InputPipe> {
    for (;;) {
      const pipe = this.#pipes.pop();
      if (this.#pipes.length < LOW) {
        const filled = this.#fill();
        if (pipe === undefined) {
          await filled;
          continue;
        }
        // Who finds the store empty tries again and gets the error; this taker has its pipe.
        filled.catch((error: unknown) => console.error('making pipes ahead failed:', error));
      }
      if (pipe !== undefined) return pipe;
    }
  }

  #fill(): Promise<void> {
    this.#refill ??= this.#make(FULL - this.#pipes.length).finally(() => {
      this.#refill = undefined;
    });
    return this.#refill;
  }

  async #make(count: number): Promise<void> {
    const maker = spawn('perl', ['-e', this.#program, String(count)], { stdio: ['pipe', 'pipe', 'inherit'] });
    maker.stdin.on('error', () => undefined);
    const timer = setTimeout(() => maker.kill('SIGKILL'), MAKE_DEADLINE_MS);
    try {
      for (const fd of await saidBy(maker)) this.#pipes.push(this.#open(`/proc/${maker.pid}/fd/${fd}`));
    } finally {
      clearTimeout(timer);
      maker.kill('SIGKILL');
    }
  }

  #open(path: string): InputPipe {
    const readFd = openSync(path, constants.O_RDONLY);
    try {
      fchownSync(readFd, this.#owner.uid, this.#owner.gid);
      return { readFd, writeFd: openSync(path, constants.O_WRONLY) };
    } catch (error) {
      closeSync(readFd);
      throw error;
    }
  }
}

/** The lines that the maker says; it waits then. */
async function saidBy(maker: ChildProcess & { stdin: Writable; stdout: Readable }): Promise<string[]> {
  const failed = new Promise<never>((_resolve, reject) => {
    maker.once('error', reject);
    maker.once('exit', (code, signal) =>
      reject(new Error(`perl, which makes pipes, ended with ${signal ?? `exit code ${code}`}`)),
    );
  });
  failed.catch(() => undefined);
  const chunks = await Promise.race([maker.stdout.toArray() as Promise<Buffer[]>, failed]);
  const lines = Buffer.concat(chunks).toString('latin1').split('\n').filter(Boolean);
  if (lines.length === 0) return await failed;

  return lines;
}
