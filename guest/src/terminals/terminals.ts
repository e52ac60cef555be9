// Terminals of the tenant's user: a login shell or a command, each in a pseudo-terminal. Limits
// their number.
import type { TerminalSize } from '@berth/protocol/calls/connections.ts';
import { Refused } from '../access/refused.ts';
import { AttachedProgram } from '../commands/attached.ts';
import type { CommandOptions, Launcher } from '../keeper/launcher.ts';
import type { Program } from '../commands/program.ts';
import type { PosixSessions } from '../commands/sessions.ts';

/** A request for a program in a terminal; null: the login shell. */
type TerminalCommand = TerminalSize & { command: string | null };

/** Bytes that a terminal may be ahead of its screen, which an interrupt cannot take back. */
const AHEAD_BYTES = 65_536;

export class Terminals {
  readonly #launcher: Launcher;
  readonly #sessions: PosixSessions;
  readonly #maxTerminals: number;
  readonly #open = new Set<AttachedProgram>();
  #opening = 0;

  constructor(launcher: Launcher, sessions: PosixSessions, maxTerminals: number) {
    this.#launcher = launcher;
    this.#sessions = sessions;
    this.#maxTerminals = maxTerminals;
  }

  /** Resolves once the shell runs. Rejects with {@link Refused} or the signal's reason. */
  async open({ rows, cols, command }: TerminalCommand, options: CommandOptions, signal: AbortSignal): Promise<Program> {
    if (this.#open.size + this.#opening >= this.#maxTerminals) {
      throw new Refused(
        429,
        `${this.#maxTerminals} terminals are open in this machine already; try again when one is closed`,
      );
    }

    signal.throwIfAborted();
    this.#opening += 1;
    try {
      const shown = { command, terminal: { rows, columns: cols }, options };
      const asked = { ...shown, hasInput: true, keepBytes: AHEAD_BYTES, holds: true };
      const sessions = command === null ? undefined : this.#sessions;
      const terminal = await AttachedProgram.start(this.#launcher, asked, sessions);
      if (signal.aborted) {
        terminal.kill();
        throw signal.reason;
      }
      this.#open.add(terminal);
      void terminal.gone.then(() => this.#open.delete(terminal));
      return terminal;
    } finally {
      this.#opening -= 1;
    }
  }

  /** Ends every terminal and its commands. */
  hangUpAll(): void {
    for (const terminal of this.#open) terminal.kill();
  }
}
