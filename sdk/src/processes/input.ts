// Input of a process as a stream, by requests that repeat without a second effect.
import type { Calls } from '../calls/calls.ts';
import { PROCESS_LIMITS } from '../generated/command-limits.ts';
import { toBase64 } from '../transport/base64.ts';
import { BerthError } from '../transport/errors.ts';
import { Pauses } from '../transport/pauses.ts';

/** Bytes of a request: half of what may wait, so that a process that reads always makes room. */
const PIECE_BYTES = PROCESS_LIMITS.inputBytes / 2;
const QUEUE_BYTES = PROCESS_LIMITS.inputBytes;

export class ProcessInput {
  readonly writable: WritableStream<Uint8Array | string>;
  readonly #calls: Calls;
  readonly #path: { sandboxId: string; processId: string };
  /** Aborts with the stream. */
  #signal = new AbortController().signal;
  #offset: number | undefined;

  /** @param offset bytes of the input so far, if known */
  constructor(calls: Calls, path: { sandboxId: string; processId: string }, offset: number | undefined) {
    this.#calls = calls;
    this.#path = path;
    this.#offset = offset;
    const encoder = new TextEncoder();
    this.writable = new WritableStream<Uint8Array | string>(
      {
        start: (controller) => {
          // Unlike `abort` of this object, it aborts during a write. Node's types lack it.
          this.#signal = (controller as { signal?: AbortSignal }).signal ?? this.#signal;
        },
        write: async (chunk) => {
          const bytes = typeof chunk === 'string' ? encoder.encode(chunk) : chunk;
          for (let at = 0; at < bytes.length; at += PIECE_BYTES)
            await this.#send(bytes.subarray(at, at + PIECE_BYTES), false);
        },
        close: async () => await this.#send(new Uint8Array(), true),
      },
      {
        highWaterMark: QUEUE_BYTES,
        size: (chunk) => (typeof chunk === 'string' ? chunk.length : (chunk?.byteLength ?? 0)),
      },
    );
  }

  /** Waits while the process does not read. */
  async #send(bytes: Uint8Array, end: boolean): Promise<void> {
    const data = toBase64(bytes);
    const pauses = new Pauses(this.#signal, undefined);
    for (;;) {
      try {
        this.#offset ??= await this.#post({ data: '', end: false });
        this.#offset = await this.#post({ data, encoding: 'base64', offset: this.#offset, end });
        return;
      } catch (error) {
        const code = error instanceof BerthError ? error.code : undefined;
        // The process closed it, or a request whose response was lost.
        if (code === 'process_over' && end) return;
        if (code === 'process_input_full') {
          pauses.succeeded();
          await pauses.pause();
        } else {
          await pauses.afterFailure(error, { isActive: false });
        }
      }
    }
  }

  async #post(body: { data: string; encoding?: 'base64'; offset?: number; end: boolean }): Promise<number> {
    const { raw, with: set } = this.#calls;
    const notes = { signal: this.#signal, repeatable: true };
    return (await raw.writeProcessInput({ path: this.#path, body, ...set(notes) })).offset;
  }
}
