// A shell as the process of the scripted agent: runs one command at a time, and returns its output.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** Output kept of a command; the rest is discarded. */
const OUTPUT_BYTES = 4 * 1_024 * 1_024;

export class Shell {
  readonly #child: ChildProcess;
  readonly #ended: Promise<never>;
  #output = '';
  #waiting: { mark: string; done: (output: string) => void } | null = null;
  #commands = 0;

  constructor(child: ChildProcess, exited: (message: string) => void) {
    this.#child = child;
    const ended = Promise.withResolvers<never>();
    this.#ended = ended.promise;
    this.#ended.catch(() => undefined);
    child.once('error', (error) => ended.reject(error));
    child.once('exit', (code, signal) => {
      const message = `the scripted agent exited with ${signal ?? code}`;
      ended.reject(new Error(message));
      exited(message);
    });
    child.stdin?.on('error', () => undefined);
    child.stderr?.resume();
    child.stdout?.setEncoding('utf8').on('data', (text: string) => this.#take(text));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Rejects when the shell exits. */
  run(command: string): Promise<string> {
    this.#commands += 1;
    const mark = `\u0001done ${this.#commands}\u0001`;
    const done = Promise.withResolvers<string>();
    this.#waiting = { mark, done: done.resolve };
    this.#child.stdin?.write(`${command}\nprintf '\\001done ${this.#commands}\\001'\n`);
    return Promise.race([done.promise, this.#ended]);
  }

  async end(): Promise<void> {
    const exit = once(this.#child, 'exit');
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;

    this.#child.kill('SIGKILL');
    await exit;
  }

  #take(text: string): void {
    this.#output = (this.#output + text).slice(-OUTPUT_BYTES);
    const at = this.#waiting === null ? -1 : this.#output.indexOf(this.#waiting.mark);
    if (at < 0) return;

    const output = this.#output.slice(0, at);
    this.#output = '';
    this.#waiting?.done(output);
  }
}
