// Unnamed pipes for the input of commands, made ahead of time, both ends open. A FIFO does not
// work: a program that reopens it as /dev/stdin after everything was written waits for a writer for
// ever. Node's own pipes are sockets, which cannot be reopened at all. make-pipes.pl makes the
// pipes, because Node cannot, and this process opens them through /proc.
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, constants, fchownSync, openSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';

/** Each pipe is two open files. */
const FULL = 64;
const LOW = 32;
const MAKE_DEADLINE_MS = 20_000;

/** Both ends of a pipe, open and blocking. The taker closes both. */
interface InputPipe {
  readFd: number;
  writeFd: number;
}

/** Store of pipes owned by one user: the owner of a pipe may reopen it as /dev/stdin. */
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

  /** Takes one pipe; waits for a refill when the store is empty. Rejects when none can be made. */
  async take(): Promise<InputPipe> {
    for (;;) {
      const pipe = this.#pipes.pop();
      if (this.#pipes.length < LOW) {
        const filled = this.#fill();
        if (pipe === undefined) {
          await filled;
          continue;
        }
        // The caller has its pipe. A later caller that finds the store empty retries and gets the
        // error.
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
      for (const fd of await outputLinesOf(maker)) this.#pipes.push(this.#open(`/proc/${maker.pid}/fd/${fd}`));
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

/** Output lines of make-pipes.pl, which then waits. */
async function outputLinesOf(maker: ChildProcess & { stdin: Writable; stdout: Readable }): Promise<string[]> {
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
