// Terminals of the tenant's user: a login shell or a command, each in a pseudo-terminal made and
// served by a helper process (helper.pl). Owns their number and their ends. Must not know the wire.
import { spawn, type ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import type { Duplex, Readable, Writable } from 'node:stream';
import type { TerminalAsked, TerminalExit, TerminalOrder } from '@berth/protocol/calls/connections.ts';
import { bytesFrames } from '@berth/protocol/terminal-frames.ts';
import { environmentOf } from '../commands/environment.ts';
import type { GuestConfig } from '../machine/config.ts';
import type { OomProtection } from '../machine/oom-protection.ts';
import { exitOf, type Program, type OnFrames } from '../commands/program.ts';
import { Refused } from '../access/refused.ts';
import { statOf, type PosixSessions } from '../commands/sessions.ts';

const START_DEADLINE_MS = 20_000;
/** Limit on the helper's lines; it sends a few words. */
const SAID_CHARACTERS = 4_096;

/** A request for a program in a terminal. */
type TerminalCommand = Extract<TerminalAsked, { tty: true }>;

type Helper = ChildProcess & { stdin: Writable; stdout: Readable };

export class Terminals {
  readonly #config: GuestConfig;
  readonly #sessions: PosixSessions;
  readonly #program: string;
  readonly #protection: OomProtection | undefined;
  readonly #open = new Set<Terminal>();
  #opening = 0;

  /** `program`: the text of helper.pl. `protection`: OOM protection, not inherited by shells. */
  constructor(config: GuestConfig, sessions: PosixSessions, program: string, protection?: OomProtection) {
    this.#config = config;
    this.#sessions = sessions;
    this.#program = program;
    this.#protection = protection;
  }

  /** Resolves once the shell runs. Rejects with {@link Refused} or the signal's reason. */
  async open(asked: TerminalCommand, signal: AbortSignal): Promise<Program> {
    const { maxTerminals } = this.#config;
    if (asked.command?.includes('\0') === true)
      throw new Refused(400, 'command contains a NUL character, which no shell command can');

    if (this.#open.size + this.#opening >= maxTerminals) {
      throw new Refused(
        429,
        `${maxTerminals} terminals are open in this machine already; try again when one is closed`,
      );
    }

    signal.throwIfAborted();
    this.#opening += 1;
    try {
      const terminal = await this.#start(asked, signal);
      this.#open.add(terminal);
      void terminal.gone.then(() => this.#open.delete(terminal));
      return terminal;
    } finally {
      this.#opening -= 1;
    }
  }

  /** Ends every terminal and its commands. */
  hangUpAll(): void {
    for (const terminal of this.#open) terminal.end(0);
  }

  async #start(asked: TerminalCommand, signal: AbortSignal): Promise<Terminal> {
    const helper = this.#spawn(asked);
    const said = helper.stdio[3] as Duplex;
    // The exit event of the helper reports a failed write.
    for (const stream of [helper.stdin, helper.stdout, said]) stream.on('error', () => undefined);

    const words = new HelperProtocol(said);
    try {
      const leader = await untilReady(helper, words, signal);
      said.write('go\n');
      return new Terminal(helper, words, asked.command === null ? undefined : { leader, sessions: this.#sessions });
    } catch (error) {
      helper.kill('SIGKILL');
      throw error;
    }
  }

  #spawn({ rows, cols, command }: TerminalCommand): Helper {
    const { user, codeFolder } = this.#config;
    const environment = environmentOf(user, codeFolder, 'xterm-256color');
    this.#protection?.remove();
    try {
      return spawn('perl', ['-e', this.#program, String(rows), String(cols), ...(command === null ? [] : [command])], {
        cwd: codeFolder,
        // The login shell sets its own SHELL.
        env: command === null ? { ...environment, COLORTERM: 'truecolor' } : environment,
        stdio: ['pipe', 'pipe', 'inherit', 'pipe'],
        detached: true,
        ...(process.getuid?.() === user.uid ? {} : { uid: user.uid, gid: user.gid }),
      }) as Helper;
    } finally {
      this.#protection?.restore();
    }
  }
}

/** Lines from a helper. */
class HelperProtocol {
  readonly channel: Duplex;
  onLine: (line: string) => void = () => undefined;
  /** Last line of the helper. */
  ended: TerminalExit | undefined;
  #text = '';

  constructor(channel: Duplex) {
    this.channel = channel;
    channel.setEncoding('latin1');
    channel.on('data', (chunk: string) => {
      const lines = (this.#text + chunk).split('\n');
      this.#text = (lines.pop() ?? '').slice(0, SAID_CHARACTERS);
      for (const line of lines) {
        const [, code, signal] = /^ended (\d{1,3}) (\d{1,3})$/.exec(line) ?? [];
        if (signal === undefined) this.onLine(line);
        else this.ended = signal === '0' ? { exit: Number(code) & 255 } : endedBy(Number(signal));
      }
    });
  }
}

class Terminal implements Program {
  readonly input: Writable;
  readonly ended: Promise<TerminalExit>;
  /** Resolves when no process remains to be ended. */
  readonly gone: Promise<void>;
  readonly #helper: Helper;
  readonly #helperProtocol: HelperProtocol;
  /**
   * Set for a command: its whole POSIX session ends when its caller disconnects or the helper
   * exits. Programs of a login shell only get SIGHUP.
   */
  readonly #whole: { leader: number; sessions: PosixSessions } | undefined;
  #onOutput: ((chunk: Buffer) => void) | undefined;
  #killAfterMs: number | undefined;

  constructor(helper: Helper, words: HelperProtocol, whole?: { leader: number; sessions: PosixSessions }) {
    this.#helper = helper;
    this.#helperProtocol = words;
    this.#whole = whole;
    this.input = helper.stdin;
    const closed = new Promise<TerminalExit>((resolve) => {
      helper.once('close', (code, signal) => resolve(words.ended ?? exitOf(code, signal)));
    });
    this.ended = closed;
    this.gone = closed.then(() =>
      words.ended === undefined ? this.#whole?.sessions.end(this.#whole.leader, this.#killAfterMs) : undefined,
    );
  }

  outputTo(take: OnFrames): void {
    const { stdout } = this.#helper;
    this.#onOutput = (chunk) => {
      if (!take(bytesFrames(chunk))) stdout.pause();
    };
    stdout.on('data', this.#onOutput);
  }

  resume(): void {
    this.#helper.stdout.resume();
  }

  order(order: TerminalOrder): boolean {
    if ('end' in order) return false;
    this.#helperProtocol.channel.write(lineOf(order));
    return true;
  }

  hangUp(): void {
    this.end();
  }

  /**
   * Ends the helper, and with it the terminal: shell and programs get SIGHUP. Remaining processes
   * of a command are killed `killAfterMs` later.
   */
  end(killAfterMs?: number): void {
    this.#killAfterMs = killAfterMs;
    this.#helper.kill('SIGKILL');
    // Discard the output, so that a missing reader does not delay the helper's exit event.
    if (this.#onOutput !== undefined) this.#helper.stdout.off('data', this.#onOutput);
    this.#helper.stdout.resume();
  }
}

function endedBy(number: number): TerminalExit {
  const known = Object.entries(constants.signals).find(([, value]) => value === number);
  return { exit: (128 + number) & 255, signal: known?.[0] ?? `SIG${number}` };
}

function lineOf(order: Exclude<TerminalOrder, { end: true }>): string {
  return 'resize' in order
    ? `size ${order.resize.rows} ${order.resize.cols}\n`
    : `signal ${constants.signals[order.signal]} 0\n`;
}

/** Settles with the helper's first line: resolves with the pid of the terminal's session leader. */
async function untilReady(helper: Helper, words: HelperProtocol, signal: AbortSignal): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const failed = (why: string): void => reject(new Refused(500, `the terminal could not be made: ${why}`));
  words.onLine = (line) => {
    const leader = Number(/^ready (\d+)$/.exec(line)?.[1] ?? 'NaN');
    if (isLeader(leader, helper)) resolve(leader);
    else failed(line);
  };
  helper.once('error', (error) => failed(error.message));
  helper.once('exit', (code, name) => failed(`its helper ended with ${name ?? `exit code ${code}`}`));
  const timer = setTimeout(
    () => failed(`its helper was not ready within ${START_DEADLINE_MS / 1_000} s`),
    START_DEADLINE_MS,
  );
  const onAbort = (): void => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}

/** The helper runs as the tenant: its word alone must not end an arbitrary session. */
function isLeader(pid: number, helper: Helper): boolean {
  const [, parent, , session] = statOf(pid);
  return Number(parent) === helper.pid && Number(session) === pid;
}
