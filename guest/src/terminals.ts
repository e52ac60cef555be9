// Terminals of the tenant's user: a login shell in a pseudo-terminal each, made and carried by a helper process (terminal-helper.ts). Owns how many there are, and their
// ends. Must not know how they go over the wire.
import { spawn, type ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import type { Duplex, Readable, Writable } from 'node:stream';
import type { TerminalOrder, TerminalSize } from '@berth/protocol/guest.ts';
import type { GuestConfig } from './config.ts';
import type { OomProtection } from './oom-protection.ts';
import { Refused } from './refused.ts';
import { TERMINAL_PROGRAM } from './terminal-helper.ts';

const START_DEADLINE_MS = 20_000;
/** What a helper says beside the terminal is some words. */
const SAID_CHARACTERS = 4_096;

/** One terminal. */
export interface Terminal {
  /** What the keys say. */
  input: Writable;
  /** What is to be seen; ends when the shell has. */
  output: Readable;
  order(order: TerminalOrder): void;
  /** The shell's exit code, once everything was read of the output. */
  exit: Promise<number>;
  /** Takes the terminal away from its programs, who get SIGHUP. No effect once the shell has ended. */
  hangUp(): void;
}

type Helper = ChildProcess & { stdin: Writable; stdout: Readable };

export class Terminals {
  readonly #config: GuestConfig;
  readonly #protection: OomProtection | undefined;
  readonly #helpers = new Set<ChildProcess>();

  /** `protection`: that of this process, which shells do not inherit. */
  constructor(config: GuestConfig, protection?: OomProtection) {
    this.#config = config;
    this.#protection = protection;
  }

  /** Resolves once the shell is started. Rejects with {@link Refused}, or with the signal's reason; nothing runs then. */
  async open({ cols, rows }: TerminalSize, signal: AbortSignal): Promise<Terminal> {
    const { maxTerminals } = this.#config;
    if (this.#helpers.size >= maxTerminals) {
      throw new Refused(429, `${maxTerminals} terminals are open in this machine already; try again when one is closed`);
    }
    signal.throwIfAborted();
    const helper = this.#spawn(rows, cols);
    this.#helpers.add(helper);
    helper.once('close', () => this.#helpers.delete(helper));
    const said = helper.stdio[3] as Duplex;
    // Whoever writes to a helper that has ended finds out by its end.
    for (const stream of [helper.stdin, helper.stdout, said]) {
      stream.on('error', () => undefined);
    }
    try {
      await untilReady(helper, said, signal);
    } catch (error) {
      helper.kill('SIGKILL');
      throw error;
    }
    return {
      input: helper.stdin,
      output: helper.stdout,
      order: (order) => void said.write(lineOf(order)),
      exit: exitOf(helper),
      hangUp: () => void helper.kill('SIGKILL'),
    };
  }

  /** Ends every terminal. */
  hangUpAll(): void {
    for (const helper of this.#helpers) {
      helper.kill('SIGKILL');
    }
  }

  #spawn(rows: number, cols: number): Helper {
    const { user, codeFolder } = this.#config;
    this.#protection?.lift();
    try {
      return spawn('perl', ['-e', TERMINAL_PROGRAM, String(rows), String(cols)], {
        cwd: codeFolder,
        env: {
          HOME: user.home,
          USER: user.name,
          LOGNAME: user.name,
          PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
          LANG: 'C.UTF-8',
          TERM: 'xterm-256color',
          COLORTERM: 'truecolor',
          PWD: codeFolder,
        },
        stdio: ['pipe', 'pipe', 'inherit', 'pipe'],
        detached: true,
        ...(process.getuid?.() === user.uid ? {} : { uid: user.uid, gid: user.gid }),
      }) as Helper;
    } finally {
      this.#protection?.restore();
    }
  }
}

function lineOf(order: TerminalOrder): string {
  return 'resize' in order ? `size ${order.resize.rows} ${order.resize.cols}\n` : `signal ${constants.signals[order.signal]} 0\n`;
}

/** Settles with the first line that the helper says. */
async function untilReady(helper: Helper, said: Duplex, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let text = '';
  const failed = (why: string): void => reject(new Refused(500, `the terminal could not be made: ${why}`));
  said.setEncoding('latin1');
  said.on('data', (chunk: string) => {
    text = (text + chunk).slice(0, SAID_CHARACTERS);
    if (!text.includes('\n')) return;
    const [line = ''] = text.split('\n', 1);
    if (line === 'ready') resolve();
    else failed(line);
  });
  helper.once('error', (error) => failed(error.message));
  helper.once('exit', (code, name) => failed(`its helper ended with ${name ?? `exit code ${code}`}`));
  const timer = setTimeout(() => failed(`its helper was not ready within ${START_DEADLINE_MS / 1_000} s`), START_DEADLINE_MS);
  const onAbort = (): void => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}

function exitOf(helper: Helper): Promise<number> {
  return new Promise((resolve) => {
    helper.once('close', (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
  });
}
