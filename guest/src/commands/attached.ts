// A program with a connected caller, in a terminal or with three pipes: input, output, orders and
// an exit. The program waits for its reader, so that no output is lost.
import { constants } from 'node:os';
import { Writable } from 'node:stream';
import type { TerminalExit, TerminalOrder } from '@berth/protocol/calls/connections.ts';
import { streamFrame } from '@berth/protocol/terminal-frames.ts';
import type { ProcessEnd } from '../keeper/keeper.ts';
import type { StreamName } from '../keeper/launch.ts';
import { signalName } from '../keeper/signal-name.ts';
import { StreamReader } from '../keeper/stream-files.ts';
import { type Launched, type Launcher } from '../keeper/launcher.ts';
import type { OnFrames, Program } from './program.ts';
import type { PosixSessions } from './sessions.ts';
import { KILLED } from './running.ts';

/** Longest forwarded chunk. */
const CHUNK_BYTES = 65_535;
/** Bytes of input that wait for the program. */
const INPUT_BYTES = 262_144;

type Asked = Parameters<Launcher['start']>[0];

interface Output {
  name: StreamName;
  /** Its offset: what is passed on. */
  reader: StreamReader;
  /** As the keeper said. */
  length: number;
  /** A `grown` is to come. */
  isWatched: boolean;
}

export class AttachedProgram implements Program {
  readonly input: Writable;
  readonly ended: Promise<TerminalExit>;
  /** Resolves when no process remains to be ended. */
  readonly gone: Promise<void>;
  readonly #launcher: Launcher;
  readonly #launched: Launched;
  readonly #sessions: PosixSessions | undefined;
  readonly #outputs: Output[];
  readonly #isTerminal: boolean;
  readonly #ended = Promise.withResolvers<TerminalExit>();
  readonly #gone = Promise.withResolvers<void>();
  #take: OnFrames | undefined;
  #isPaused = false;
  #end: ProcessEnd | undefined;
  #hungUp = false;
  #whenTaken: (() => void) | undefined;

  /**
   * Starts the program. Without `sessions`, it is a login shell: a hang-up only closes its
   * terminal. Otherwise its whole POSIX session is ended.
   */
  static async start(launcher: Launcher, asked: Asked, sessions?: PosixSessions): Promise<AttachedProgram> {
    const launched = await launcher.start(asked);
    const program = new AttachedProgram(launcher, launched, asked, sessions);
    launcher.keeper.listen(launched.id, {
      grown: (stream, length) => program.#grow(stream, length),
      taken: (bytes) => program.#taken(bytes),
      ended: (end) => program.#finish(end),
      lost: () => program.kill(),
    });
    return program;
  }

  private constructor(launcher: Launcher, launched: Launched, { terminal }: Asked, sessions?: PosixSessions) {
    this.#launcher = launcher;
    this.#launched = launched;
    this.#sessions = sessions;
    this.#isTerminal = terminal !== undefined;
    const names: readonly StreamName[] = this.#isTerminal ? ['output'] : ['stdout', 'stderr'];
    this.#outputs = names.map((name) => ({
      name,
      reader: new StreamReader(launched.folder, name),
      length: 0,
      isWatched: false,
    }));
    this.ended = this.#ended.promise;
    this.gone = this.#gone.promise;
    const { keeper } = launcher;
    this.input = new Writable({
      highWaterMark: INPUT_BYTES,
      decodeStrings: true,
      write: (chunk: Buffer, _encoding, done) => this.#write([chunk], done),
      writev: (chunks, done) =>
        this.#write(
          chunks.map(({ chunk }) => chunk as Buffer),
          done,
        ),
      final: (done) => {
        keeper.endInput(launched.id);
        done();
      },
    });
    this.input.on('error', () => undefined);
  }

  outputTo(take: OnFrames): void {
    this.#take = take;
    this.resume();
  }

  resume(): void {
    this.#isPaused = false;
    for (const output of this.#outputs) this.#pass(output);
    this.#conclude();
  }

  order(order: TerminalOrder): boolean {
    const { keeper } = this.#launcher;
    const { id } = this.#launched;
    if ('signal' in order) {
      // After the exit, the group id may belong to another process.
      if (this.#end === undefined) keeper.signal(id, constants.signals[order.signal]);
    } else if ('resize' in order) {
      if (!this.#isTerminal) return false;
      keeper.resize(id, { rows: order.resize.rows, columns: order.resize.cols });
    } else {
      if (this.#isTerminal) return false;
      this.input.end();
    }
    return true;
  }

  hangUp(): void {
    this.#leave();
  }

  /** Ends the program and its commands at once. */
  kill(): void {
    this.#leave(0);
  }

  #write(chunks: readonly Buffer[], done: (error?: Error) => void): void {
    if (this.#end !== undefined || this.#hungUp) return done();
    this.#whenTaken = done;
    this.#launcher.keeper.input(this.#launched.id, Buffer.concat(chunks));
  }

  #taken(bytes: number | null): void {
    const done = this.#whenTaken;
    this.#whenTaken = undefined;
    // Nobody reads: later input is dropped.
    if (bytes === null) this.input.destroy();
    done?.();
  }

  #grow(stream: StreamName, length: number): void {
    const output = this.#outputs.find(({ name }) => name === stream);
    if (output === undefined) return;
    output.isWatched = false;
    output.length = Math.max(output.length, length);
    this.#pass(output);
    this.#conclude();
  }

  /** Passes on what is stored, until the taker pauses; then asks for more. */
  #pass(output: Output): void {
    const take = this.#take;
    if (take === undefined || this.#hungUp) return;
    while (!this.#isPaused && output.reader.offset < output.length) {
      const { bytes } = output.reader.read(CHUNK_BYTES);
      if (bytes.length === 0) break;
      if (!take(streamFrame(output.name, bytes))) this.#isPaused = true;
    }
    if (!this.#isPaused && !output.isWatched && this.#end === undefined) {
      output.isWatched = true;
      this.#launcher.keeper.watch(this.#launched.id, output.name, output.reader.offset);
    }
  }

  #finish(end: ProcessEnd): void {
    this.#end ??= end;
    this.input.destroy();
    this.#taken(null);
    // The keeper has stored what the program wrote before its exit.
    for (const output of this.#outputs) {
      output.length = Number.MAX_SAFE_INTEGER;
      this.#pass(output);
    }
    this.#conclude();
  }

  /** Reports the exit after the output. */
  #conclude(): void {
    if (this.#end === undefined) return;
    if (!this.#hungUp && (this.#take === undefined || this.#isPaused)) return;
    this.#ended.resolve(exitOf(this.#end));
    if (!this.#hungUp) {
      this.#hungUp = true;
      this.#release();
      this.#gone.resolve();
    }
  }

  /** A background program may still write to a pipe, and is dropped with its terminal. */
  #release(): void {
    for (const { reader } of this.#outputs) reader.close();
    if (this.#isTerminal) this.#launcher.forget(this.#launched);
    else this.#launcher.discard(this.#launched);
  }

  #leave(graceMs?: number): void {
    if (this.#hungUp) return;
    this.#hungUp = true;
    this.input.destroy();
    // A login shell: the kernel hangs up, and the shell and its foreground programs get SIGHUP.
    const ending = this.#sessions?.end(this.#launched.pid, graceMs);
    this.#release();
    void Promise.resolve(ending).then(() => {
      this.#ended.resolve(exitOf(KILLED));
      this.#gone.resolve();
    });
  }
}

/** Exit in the form of the wire. */
function exitOf({ code, signal }: ProcessEnd): TerminalExit {
  if (signal === 0) return { exit: code };
  return { exit: (128 + signal) & 255, signal: signalName(signal) };
}
