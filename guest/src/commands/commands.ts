// The tenant's commands: `/bin/sh -c` in the code folder, either for a response, or with pipes to a
// caller. Limits how many run.
import type { GuestRunRequest } from '@berth/protocol/calls/exec.ts';
import { EXEC_OUTPUT_BYTES } from '@berth/protocol/guest-limits.ts';
import { StreamReader } from '../keeper/stream-files.ts';
import { AttachedProgram } from './attached.ts';
import { CommandRefused, type CommandOptions, type Launched, type Launcher } from '../keeper/launcher.ts';
import { killGroup } from './process-groups.ts';
import { ANY_LENGTH, KILLED, RunningCommand } from './running.ts';
import type { PosixSessions } from './sessions.ts';
import { Tail } from './tail.ts';

/** More than the response has: a part of the first character may be cut off. */
const KEPT_BYTES = EXEC_OUTPUT_BYTES + 4;
/** Bytes of each output that a command with a caller may be ahead of it. */
const AHEAD_BYTES = 1_048_576;
const READ_BYTES = 65_536;
const SIGKILL = 9;

export class Commands {
  readonly #launcher: Launcher;
  readonly #sessions: PosixSessions;
  readonly #maxRunning: number;
  readonly #running = new Set<{ kill(): void }>();
  #starting = 0;

  constructor(launcher: Launcher, sessions: PosixSessions, maxRunning: number) {
    this.#launcher = launcher;
    this.#sessions = sessions;
    this.#maxRunning = maxRunning;
  }

  /** Rejects with {@link CommandRefused}, or with the signal's reason; nothing runs then. */
  start(
    { command, timeoutSeconds, stdin = '', ...options }: GuestRunRequest,
    signal: AbortSignal,
  ): Promise<RunningCommand> {
    return this.#begin(signal, async () => {
      const hasInput = stdin !== '';
      const kept = { keepBytes: KEPT_BYTES, holds: false, limitMs: timeoutSeconds * 1_000 };
      const launched = await this.#launcher.start({ command, options, hasInput, ...kept });
      const { keeper } = this.#launcher;
      if (hasInput) {
        keeper.input(launched.id, Buffer.from(stdin));
        keeper.endInput(launched.id);
      }
      const running = new RunningCommand({
        kill: () => keeper.signal(launched.id, SIGKILL),
        output: (stream) => tailOf(launched, stream),
      });
      keeper.listen(launched.id, {
        grown: () => undefined,
        taken: () => undefined,
        ended: (end, lengths) => running.end(end, lengths),
        lost: () => {
          killGroup(launched.pid);
          running.end(KILLED, ANY_LENGTH);
        },
      });
      this.#watch(running, running.result, launched);
      return running;
    });
  }

  /** Starts a command for a connected caller. Rejects as {@link start} does. */
  attach(command: string, options: CommandOptions, signal: AbortSignal): Promise<AttachedProgram> {
    return this.#begin(signal, async () => {
      const asked = { command, options, hasInput: true, keepBytes: AHEAD_BYTES, holds: true };
      const attached = await AttachedProgram.start(this.#launcher, asked, this.#sessions);
      this.#watch(attached, attached.gone);
      return attached;
    });
  }

  /** Kills every running command. */
  killAll(): void {
    for (const command of this.#running) command.kill();
  }

  async #begin<T extends { kill(): void }>(signal: AbortSignal, begin: () => Promise<T>): Promise<T> {
    if (this.#running.size + this.#starting >= this.#maxRunning) {
      throw new CommandRefused(
        429,
        `${this.#maxRunning} commands are running in this machine already; try again when one has ended`,
      );
    }

    this.#starting += 1;
    try {
      signal.throwIfAborted();
      const command = await begin();
      if (signal.aborted) command.kill();
      return command;
    } finally {
      this.#starting -= 1;
    }
  }

  #watch(command: { kill(): void }, over: Promise<unknown>, launched?: Launched): void {
    this.#running.add(command);
    void over.then(() => {
      this.#running.delete(command);
      if (launched !== undefined) this.#launcher.discard(launched);
    });
  }
}

function tailOf({ folder }: Launched, stream: 'stdout' | 'stderr'): { text: string; truncated: boolean } {
  const tail = new Tail();
  const reader = new StreamReader(folder, stream);
  let isWhole = true;
  for (;;) {
    const expected = reader.offset;
    const { offset, bytes } = reader.read(READ_BYTES);
    if (bytes.length === 0) break;
    isWhole &&= offset === expected;
    tail.push(bytes);
  }
  reader.close();
  return { text: tail.text(), truncated: tail.truncated || !isWhole };
}
