// Output of a process for a connected reader, which a process does not wait for.
import { Writable } from 'node:stream';
import type { FollowedOrder } from '@berth/protocol/calls/processes.ts';
import { PROCESS_LIMITS } from '@berth/protocol/guest-limits.ts';
import { controlFrame, streamFrame } from '@berth/protocol/terminal-frames.ts';
import type { OnFrames, Program } from '../commands/program.ts';
import type { StreamName } from '../keeper/launch.ts';
import type { Process } from './process.ts';
import { ProcessRefused } from './refused.ts';

/** Longest frame. */
const CHUNK_BYTES = 65_535;

export class FollowedOutput implements Program {
  /** Takes nothing: input has a call of its own. */
  readonly input = new Writable().destroy();
  readonly ended: Promise<FollowedOrder>;
  readonly #process: Process;
  /** Offset of the next byte of each stream. */
  readonly #offsets: Map<StreamName, number>;
  readonly #left = new AbortController();
  readonly #ended = Promise.withResolvers<FollowedOrder>();
  /** Resolved unless the reader pauses. */
  #room = Promise.withResolvers<void>();

  constructor(process: Process, starts: Map<StreamName, number>) {
    this.#process = process;
    this.#offsets = starts;
    this.ended = this.#ended.promise;
    this.#room.resolve();
  }

  outputTo(take: OnFrames): void {
    this.#pass((frame) => {
      if (!take(frame)) this.#room = Promise.withResolvers();
    }).then(this.#ended.resolve, this.#ended.reject);
  }

  resume(): void {
    this.#room.resolve();
  }

  order(): boolean {
    return false;
  }

  hangUp(): void {
    this.#left.abort();
    this.resume();
  }

  async #pass(send: (frame: Uint8Array) => void): Promise<FollowedOrder> {
    const { signal } = this.#left;
    send(controlFrame({ starts: Object.fromEntries(this.#offsets) } satisfies FollowedOrder));
    try {
      for (;;) {
        await this.#room.promise;
        const { pieces, closed } = await this.#process.read(this.#offsets, PROCESS_LIMITS.waitMs, signal);
        if (signal.aborted) return { removed: true };
        for (const { stream, offset, bytes } of pieces) {
          const lost = offset - (this.#offsets.get(stream) ?? 0);
          if (lost > 0) send(controlFrame({ lost: { stream, bytes: lost } } satisfies FollowedOrder));
          for (let at = 0; at < bytes.length; at += CHUNK_BYTES)
            send(streamFrame(stream, bytes.subarray(at, at + CHUNK_BYTES)));
          this.#offsets.set(stream, offset + bytes.length);
        }
        if (closed.length === this.#offsets.size) return { complete: true };
      }
    } catch (error) {
      if (error instanceof ProcessRefused && error.code === 'process_not_found') return { removed: true };
      throw error;
    }
  }
}
