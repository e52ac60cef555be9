// Kernel calls that Node lacks: setting the clock, adding credited entropy with an immediate
// reseed, and aborting connections. A small helper process (kernel-calls.pl) makes them; started
// before the template's snapshot, so that a restored guest pays neither fork nor exec.
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';

const ANSWER_DEADLINE_MS = 20_000;

/** System call numbers by architecture, in the order of the helper's arguments. */
export const HELPER_CALL_NUMBERS: Readonly<Record<string, readonly [clockSettime: number, setns: number]>> = {
  x64: [227, 308],
  arm64: [112, 268],
};

type Helper = ChildProcessByStdio<Writable, Readable, null>;

/** A TCP connection of this guest over IPv4. */
export interface Connection {
  localPort: number;
  remotePort: number;
  /** Dotted decimal. */
  remoteAddress: string;
}

export class KernelCalls {
  readonly #program: string;
  #helper: Helper | undefined;

  /** `program`: the text of kernel-calls.pl. */
  constructor(program: string) {
    this.#program = program;
  }

  /** Starts the helper. A call restarts it if it has exited. */
  start(): void {
    const numbers = HELPER_CALL_NUMBERS[process.arch];
    if (numbers === undefined) throw new Error(`the numbers of the system calls on ${process.arch} are not known`);

    const helper: Helper = spawn('perl', ['-e', this.#program, ...numbers.map(String)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#helper = helper;
    const gone = (): void => {
      if (this.#helper === helper) this.#helper = undefined;
    };
    helper.once('exit', gone);
    helper.on('error', (error) => {
      console.error('the helper for kernel calls failed:', error);
      gone();
    });
    // EPIPE: the missing reply reports the helper's exit as well.
    helper.stdin.on('error', gone);
    helper.stdout.setEncoding('latin1');
  }

  stop(): void {
    this.#helper?.kill('SIGKILL');
    this.#helper = undefined;
  }

  /**
   * Sets the clock, adds the bytes to the kernel's random pool and reseeds its generator. Calls
   * `nowUnixMs` as late as possible. Calls must not overlap.
   */
  async setClockAndReseed(nowUnixMs: () => number, entropy: Buffer): Promise<void> {
    const hex = entropy.toString('hex');
    await this.#call(() => {
      const now = nowUnixMs();
      const seconds = Math.floor(now / 1_000);
      return `clock ${seconds} ${Math.floor((now - seconds * 1_000) * 1_000_000)} ${hex}`;
    });
  }

  /**
   * Aborts every TCP connection that leaves the guest, except the given one: programs that wait on
   * one get an error at once. Listening sockets and connections inside the guest stay. Calls must
   * not overlap.
   */
  async abortConnections({ localPort, remotePort, remoteAddress }: Connection): Promise<void> {
    await this.#call(() => `abort ${localPort} ${remotePort} ${remoteAddress}`);
  }

  async #call(line: () => string): Promise<void> {
    if (this.#helper === undefined) this.start();

    const helper = this.#helper;
    if (helper === undefined) throw new Error('the helper for kernel calls could not be started');

    const done = new AbortController();
    const signal = AbortSignal.any([done.signal, AbortSignal.timeout(ANSWER_DEADLINE_MS)]);
    try {
      const answered = Promise.race([
        once(helper.stdout, 'data', { signal }).then(([answer]) => String(answer).trim()),
        once(helper, 'exit', { signal }).then(() => 'the helper for kernel calls ended'),
      ]);
      helper.stdin.write(`${line()}\n`);
      const answer = await answered;
      if (answer !== 'ok') throw new Error(answer);
    } catch (error) {
      // A late reply would be taken for the reply to the next call.
      this.stop();
      throw error;
    } finally {
      done.abort();
    }
  }
}
