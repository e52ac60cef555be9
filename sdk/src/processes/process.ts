// A process of a sandbox: its output, input and end.
import type { Calls } from '../calls/calls.ts';
import { PROCESS_LIMITS } from '../generated/command-limits.ts';
import { HOLD_SECONDS } from '../generated/limits.ts';
import type { Process as ProcessData, ReadProcessOutputResult } from '../generated/raw/index.ts';
import { Follower } from './follower.ts';
import { ProcessInput } from './input.ts';
import { ProcessOutput } from './output.ts';
import type { Signal, TerminalSize } from '../streams/program.ts';
import { BerthError } from '../transport/errors.ts';
import { held, whileHeld } from '../transport/held.ts';
import { Pauses } from '../transport/pauses.ts';
import { Deadline } from '../transport/time.ts';
import type { CallOptions } from '../transport/transport.ts';
import { afterFailure } from '../calls/asleep.ts';

export type { ProcessData, ProcessOutput };

/** Options of calls that follow a process. Of the whole call, `timeoutMs` is by default none. */
export interface FollowProcessOptions extends CallOptions {
  /** Called before each repetition of a failed request, also while the sandbox sleeps. */
  onRetry?: (error: BerthError) => void;
}

/** Options of {@link SandboxProcess.output}. */
export interface ProcessOutputOptions extends FollowProcessOptions {
  /** `cursor` of an earlier chunk: continues behind it. By default: the first byte that is kept. */
  since?: string | undefined;
  /** Without `since`: only so many of the last bytes of each stream; at most 262,144. */
  tail?: number | undefined;
  /** False ends with the output until now. Default: true, up to the end of the output. */
  follow?: boolean;
}

/** End of a process. */
export interface ProcessEnd {
  /** 128 + n if signal n killed it, 124 if its timeout did; null if its end is unknown. */
  exitCode: number | null;
  signal: string | null;
  /** Why it ended, other than by itself or a signal. */
  reason: ProcessData['reason'];
}

export class SandboxProcess {
  readonly id: string;
  readonly sandboxId: string;
  readonly #calls: Calls;
  readonly #isNew: boolean;
  #data: ProcessData;
  #input: WritableStream<Uint8Array | string> | undefined;
  #end: Promise<ProcessEnd> | undefined;

  /** Constructed by the SDK. @param isNew whether its input is empty so far */
  constructor(calls: Calls, data: ProcessData, isNew: boolean) {
    this.#calls = calls;
    this.#data = data;
    this.#isNew = isNew;
    this.id = data.id;
    this.sandboxId = data.sandboxId;
  }

  /** Record of the last response. */
  get data(): ProcessData {
    return this.#data;
  }

  /**
   * Resolves with its end. Survives lost connections, restarts of the service and sleeps of the
   * sandbox, and keeps no sandbox awake.
   */
  get exited(): Promise<ProcessEnd> {
    this.#end ??= this.wait();
    // Avoid an unhandled rejection before the caller awaits.
    this.#end.catch(() => undefined);
    return this.#end;
  }

  /**
   * Its input, if it was started with `stdin` or `tty`, for one writer. Each byte arrives once,
   * also after lost connections. Waits while the process does not read; fails while the sandbox
   * sleeps, unless its project has `wakeOnUse`. Closing the stream ends the input.
   */
  get stdin(): WritableStream<Uint8Array | string> {
    this.#input ??= new ProcessInput(this.#calls, this.#path, this.#isNew ? 0 : undefined).writable;
    return this.#input;
  }

  /** Requests the current record. */
  async refresh(options: CallOptions = {}): Promise<this> {
    const { raw, with: set } = this.#calls;
    return this.#take((await raw.getProcess({ path: this.#path, ...set(options) })).process);
  }

  /** {@link exited} with options. */
  async wait(options: FollowProcessOptions = {}): Promise<ProcessEnd> {
    const { raw, with: set } = this.#calls;
    const ask = async (signal: AbortSignal): Promise<void> => {
      const request = { path: this.#path, ...held(HOLD_SECONDS.max) };
      this.#take((await raw.getProcess({ ...request, ...set(whileHeld(HOLD_SECONDS.max, { signal })) })).process);
    };
    for await (const _ of this.#asked(options, ask, () => 'none')) if (this.#data.status === 'exited') break;
    const { exitCode, signal, reason } = this.#data;
    return { exitCode, signal, reason };
  }

  /**
   * Output as it is written, each byte once: `for await (const { text } of process.output())`. Ends
   * when no program can write to it any more. Waits while the sandbox sleeps, and wakes nothing.
   */
  async *output({ since, tail, follow = true, ...options }: ProcessOutputOptions = {}): AsyncGenerator<
    ProcessOutput,
    void,
    undefined
  > {
    const { raw, with: set } = this.#calls;
    const from = { ...(since === undefined ? {} : { since }), ...(tail === undefined ? {} : { tail }) };
    // Without following: first the end so far, which a process that writes on would move.
    let end: string | undefined;
    let query: { since?: string; tail?: number } = follow ? from : { tail: 0 };
    const seconds = follow ? HOLD_SECONDS.max : undefined;
    const follower = new Follower(this.#calls, this.#path);
    const ask = async (signal: AbortSignal): Promise<ReadProcessOutputResult> => {
      follower.signal = signal;
      return await raw.readProcessOutput({
        ...{ path: this.#path, query, ...held(seconds) },
        ...set(whileHeld(seconds, { signal })),
      });
    };
    const newsIn = (answer: ReadProcessOutputResult) => (follow ? sizeOf(answer) : 'most');
    for await (const { process, chunks, cursor, complete } of this.#asked(options, ask, newsIn)) {
      this.#take(process);
      if (!follow && end === undefined) {
        end = cursor;
        query = from;
        continue;
      }
      query = { since: cursor };
      for (const chunk of chunks) yield new ProcessOutput(chunk, chunk);
      if (complete || (end !== undefined && (chunks.length === 0 || reaches(cursor, end)))) return;
      if (!follow || chunks.length === 0) continue;
      // The next response tells whether it has ended with the output.
      for await (const chunk of follower.outputFrom(cursor)) {
        query = { since: chunk.cursor };
        yield chunk;
      }
    }
  }

  /**
   * As {@link output}, but ends with the process, even if programs that it left can still write.
   * Returns its end.
   */
  async *outputUntilExit({ since, ...options }: Omit<ProcessOutputOptions, 'follow'> = {}): AsyncGenerator<
    ProcessOutput,
    ProcessEnd,
    undefined
  > {
    const { signal, timeoutMs } = options;
    const ended = new AbortController();
    const end = this.wait({ signal, timeoutMs }).finally(() => ended.abort());
    end.catch(() => undefined);
    let cursor = since;
    const following = AbortSignal.any([ended.signal, ...(signal === undefined ? [] : [signal])]);
    try {
      for await (const chunk of this.output({ ...options, since, signal: following })) {
        cursor = chunk.cursor;
        yield chunk;
      }
    } catch (error) {
      if (!ended.signal.aborted) throw error;
      // Throws if the wait failed.
      await end;
      yield* this.output({ ...options, since: cursor, follow: false });
    }
    return await end;
  }

  /** Signals its process group, or the foreground programs of its terminal. */
  async kill(signal: Signal = 'SIGTERM', options: CallOptions = {}): Promise<this> {
    const { raw, with: set } = this.#calls;
    return this.#take((await raw.signalProcess({ path: this.#path, body: { signal }, ...set(options) })).process);
  }

  /** Sets the size of its terminal. */
  async resize({ cols, rows }: TerminalSize, options: CallOptions = {}): Promise<this> {
    const { raw, with: set } = this.#calls;
    return this.#take((await raw.resizeProcess({ path: this.#path, body: { cols, rows }, ...set(options) })).process);
  }

  /** Kills it if it runs, and removes it with its output. Does nothing if it is removed already. */
  async remove(options: CallOptions = {}): Promise<void> {
    const { raw, with: set } = this.#calls;
    try {
      await raw.removeProcess({ path: this.#path, ...set({ ...options, repeatable: true }) });
    } catch (error) {
      if (!(error instanceof BerthError) || error.code !== 'process_not_found') throw error;
    }
  }

  /** For `await using`: {@link remove}. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.remove();
  }

  get #path(): { sandboxId: string; processId: string } {
    return { sandboxId: this.sandboxId, processId: this.id };
  }

  /** Responses one after the other, across outages and sleeps. */
  async *#asked<T>(
    { signal, timeoutMs, onRetry }: FollowProcessOptions,
    ask: (signal: AbortSignal) => Promise<T>,
    newsIn: (answer: T) => 'none' | 'some' | 'most',
  ): AsyncGenerator<T, void, undefined> {
    const deadline = timeoutMs === undefined ? undefined : new Deadline(timeoutMs, `process ${this.id}`, [signal]);
    const ends = deadline?.signal ?? signal ?? new AbortController().signal;
    const pauses = new Pauses(ends, onRetry);
    try {
      for (;;) {
        ends.throwIfAborted();
        const startedMs = Date.now();
        let answer: T;
        try {
          answer = await ask(ends);
        } catch (error) {
          await afterFailure(this.#calls, this.sandboxId, error, { pauses, signal: ends });
          continue;
        }
        yield answer;
        const news = newsIn(answer);
        if (news === 'none') await pauses.after(false, Date.now() - startedMs);
        else await pauses.afterPart(news === 'most');
      }
    } finally {
      deadline?.end();
    }
  }

  #take(data: ProcessData): this {
    this.#data = data;
    return this;
  }
}

/** A response has at most so many bytes of a stream. */
function sizeOf({ chunks }: ReadProcessOutputResult): 'none' | 'some' | 'most' {
  if (chunks.length === 0) return 'none';
  return chunks.some(({ data }) => data.length >= PROCESS_LIMITS.readBytes / 2) ? 'most' : 'some';
}

/** Whether a cursor is not before another one: they have an offset for each stream. */
function reaches(cursor: string, end: string): boolean {
  const offsets = cursor.split('.').map(Number);
  return end.split('.').every((offset, index) => (offsets[index] ?? 0) >= Number(offset));
}
