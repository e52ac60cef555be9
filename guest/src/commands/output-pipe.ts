// Reading end of a command's output. Forwards bytes while there is a taker and discards the rest,
// so that background processes never block on a full pipe. Must not know the use of the bytes.
import { closeSync, readSync } from 'node:fs';
import { Socket } from 'node:net';
import { hasCode } from '@berth/os/errors.ts';

/** A pipe holds at most 1 MiB, unless root enlarged it: all that a shell wrote before its exit. */
const DRAIN_BYTES = 1_048_576;

/** Longest forwarded chunk. */
const OUTPUT_CHUNK_BYTES = 65_535;
/** Shared read buffer: all reads run on one thread, and no reader keeps a reference. */
const landing = Buffer.allocUnsafeSlow(OUTPUT_CHUNK_BYTES);

/** false: pause until {@link OutputPipe.resume}. The buffer is reused: copy bytes to keep them. */
type OnBytes = (bytes: Buffer) => boolean;

export class OutputPipe {
  readonly #readFd: number;
  readonly #socket: Socket;
  #onFrames: OnBytes = () => true;

  /**
   * Takes ownership of `readFd`, a non-blocking pipe; closes it when this throws. Discards
   * everything that arrives before {@link pipeTo}.
   */
  constructor(readFd: number) {
    this.#readFd = readFd;
    try {
      this.#socket = new Socket({
        fd: readFd,
        readable: true,
        writable: false,
        onread: { buffer: landing, callback: (length) => this.#onFrames(landing.subarray(0, length)) },
      });
    } catch (error) {
      closeSync(readFd);
      throw error;
    }
    // The socket closes itself after an error: the output ends there.
    this.#socket.on('error', (error) => console.error('reading the output of a command failed:', error));
  }

  /** True when no writer is left. */
  get ended(): boolean {
    return this.#socket.destroyed;
  }

  /** Passes later bytes to `take`. */
  pipeTo(take: OnBytes): void {
    this.#onFrames = take;
  }

  /** Resumes passing bytes. */
  resume(): void {
    this.#socket.resume();
  }

  /** Passes on the bytes now in the pipe, even while paused, and discards everything after them. */
  finish(): void {
    this.#drain();
    this.discard();
  }

  /** Discards everything from now on. */
  discard(): void {
    this.#onFrames = () => true;
    this.resume();
  }

  /** Calls the listener when no writer is left. */
  onEnded(listener: () => void): void {
    if (this.ended) listener();
    else this.#socket.once('close', listener);
  }

  /** Closes the pipe: a process that still writes to it gets SIGPIPE. */
  close(): void {
    this.#socket.destroy();
  }

  #drain(): void {
    let left = DRAIN_BYTES;
    // A destroyed socket has closed its descriptor, whose number may already be reused.
    while (left > 0 && !this.#socket.destroyed) {
      const length = readNow(this.#readFd);
      if (length === 0) return;

      this.#onFrames(landing.subarray(0, length));
      left -= length;
    }
  }
}

/** Bytes read; 0: the pipe is empty, or no writer is left. */
function readNow(fd: number): number {
  try {
    return readSync(fd, landing);
  } catch (error) {
    if (hasCode(error, 'EAGAIN')) return 0;

    throw error;
  }
}
