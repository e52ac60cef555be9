// A command without a terminal, connected to a caller: three pipes, signals and an exit code. As
// with exec, the shell's exit counts, not the end of the pipes. When the caller disconnects, the
// whole POSIX session is ended.
import type { ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import type { TerminalExit, TerminalOrder } from '@berth/protocol/calls/connections.ts';
import { COMMAND_STREAM, outputFrame } from '@berth/protocol/terminal-frames.ts';
import { signalGroup } from './running.ts';
import type { OutputPipe } from './output-pipe.ts';
import { exitOf, type Program, type OnFrames } from './program.ts';
import type { PosixSessions } from './sessions.ts';

/** The daemon's ends of a command's pipes. */
interface CommandPipes {
  stdin: Socket;
  stdout: OutputPipe;
  stderr: OutputPipe;
}

export class AttachedCommand implements Program {
  readonly input: Socket;
  readonly ended: Promise<TerminalExit>;
  /** Resolves when no process remains to be ended. */
  readonly gone: Promise<void>;
  readonly #leader: number;
  readonly #outputs: readonly OutputPipe[];
  readonly #sessions: PosixSessions;
  readonly #gone = Promise.withResolvers<void>();
  /** Before {@link outputTo}: the first chunk of each output; the rest stays in its pipe. */
  #early: Uint8Array[] = [];
  #onFrames: OnFrames = (frames) => {
    this.#early.push(frames);
    return false;
  };
  #running = true;
  #hungUp = false;

  /** The child leads a POSIX session and has just been started: its pipes are still empty. */
  constructor(child: ChildProcess, { stdin, stdout, stderr }: CommandPipes, sessions: PosixSessions) {
    this.#leader = child.pid as number;
    this.#sessions = sessions;
    this.input = stdin;
    this.#outputs = [stdout, stderr];
    stdout.pipeTo((bytes) => this.#onFrames(outputFrame(COMMAND_STREAM.stdout, bytes)));
    stderr.pipeTo((bytes) => this.#onFrames(outputFrame(COMMAND_STREAM.stderr, bytes)));
    this.gone = this.#gone.promise;
    this.ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.#running = false;
        this.#outputs.forEach((output) => output.finish());
        stdin.destroy();
        resolve(exitOf(code, signal));
        if (!this.#hungUp) this.#gone.resolve();
      });
    });
  }

  outputTo(take: OnFrames): void {
    this.#onFrames = take;
    const early = this.#early;
    this.#early = [];
    // Each early chunk paused its output.
    if (early.map((frames) => take(frames)).every(Boolean)) this.resume();
  }

  resume(): void {
    this.#outputs.forEach((output) => output.resume());
  }

  order(order: TerminalOrder): boolean {
    if ('end' in order) {
      this.input.end();
    } else if ('signal' in order) {
      // After the shell has been reaped, the group id may belong to another process.
      if (this.#running) signalGroup(this.#leader, order.signal);
    } else {
      return false;
    }
    return true;
  }

  hangUp(): void {
    this.#end();
  }

  /** Kills the command at once. */
  kill(): void {
    this.#end(0);
  }

  #end(graceMs?: number): void {
    if (!this.#running && !this.#hungUp) return;

    this.#hungUp = true;
    // Discard the output, so that a missing reader does not block the command.
    this.#outputs.forEach((output) => output.discard());
    this.input.destroy();
    void this.#sessions.end(this.#leader, graceMs).then(() => this.#gone.resolve());
  }
}
