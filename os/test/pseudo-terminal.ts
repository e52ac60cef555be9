// Runs a program in a dedicated terminal: sends keys, collects the output, resizes the window. Uses
// `script`, which every Debian has.
import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { readFile, readlink } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { deadlineOf } from './until.ts';

const run = promisify(execFile);
const DEADLINE_MS = 120_000;
const POLL_INTERVAL_MS = 20;

export class PseudoTerminal {
  readonly #script: ChildProcessWithoutNullStreams;
  readonly #ended: Promise<number | null>;
  /** Everything that was shown so far. */
  text = '';

  /** `script -e` exits with the program's exit code. */
  constructor(program: string, args: readonly string[], env: Readonly<Record<string, string | undefined>>) {
    const words = [program, ...args].map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`);
    this.#script = spawn('script', ['-qefc', `exec ${words.join(' ')}`, '/dev/null'], {
      env: { ...env, SHELL: '/bin/sh' },
    });
    this.#script.stdout.setEncoding('utf8').on('data', (chunk: string) => (this.text += chunk));
    this.#script.stdin.on('error', () => undefined);
    this.#ended = once(this.#script, 'close').then(([code]) => code as number | null);
  }

  type(keys: string | Buffer): void {
    this.#script.stdin.write(keys);
  }

  /** Waits until the text appears after position `from`. */
  async shows(what: string | RegExp, from = 0): Promise<RegExpExecArray> {
    const pattern =
      typeof what === 'string' ? new RegExp(what.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)) : what;
    const deadline = Date.now() + deadlineOf(DEADLINE_MS);
    for (;;) {
      const found = pattern.exec(this.text.slice(from));
      if (found !== null) return found;
      const seen = JSON.stringify(this.text.slice(from).slice(-500));
      assert.ok(Date.now() < deadline, `the terminal does not show ${pattern.source}; it shows ${seen}`);
      await delay(POLL_INTERVAL_MS);
    }
  }

  /** Like a window manager: the kernel signals the foreground program. */
  async resize(rows: number, cols: number): Promise<void> {
    await run('stty', ['-F', await this.device(), 'rows', String(rows), 'cols', String(cols)]);
  }

  /** Its settings, as stty has them. */
  async settings(): Promise<string> {
    return (await run('stty', ['-F', await this.device(), '-a'])).stdout;
  }

  /** Process id of the program. */
  async program(): Promise<number> {
    const { pid } = this.#script;
    for (;;) {
      const [child] = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).split(' ');
      if (child !== undefined && child !== '') return Number(child);
      await delay(POLL_INTERVAL_MS);
    }
  }

  async device(): Promise<string> {
    for (;;) {
      const device = await readlink(`/proc/${await this.program()}/fd/0`);
      if (device.startsWith('/dev/pts/')) return device;
      await delay(POLL_INTERVAL_MS);
    }
  }

  /** The program's exit code. */
  ended(): Promise<number | null> {
    return this.#ended;
  }

  /** Takes the terminal away from the program. */
  hangUp(): void {
    this.#script.kill('SIGKILL');
  }
}
