// The reading end of one output of a command: hands on what comes for as long as somebody wants it,
// and throws the rest away, so that what a command left running in the background never blocks on a
// full pipe. Must not know what becomes of the bytes.
import { closeSync, readSync } from 'node:fs';
import { Socket } from 'node:net';

/**
 * A pipe holds 1 MiB at most, unless root made it larger: what a shell wrote before its end is
 * within that.
 */
const DRAIN_BYTES = 1_048_576;

/** Longest that is handed on at once. */
export const OUTPUT_CHUNK_BYTES = 65_535;
/** Every read lands here first: all of them happen in one thread, and none keeps a reference. */
const landing = Buffer.allocUnsafeSlow(OUTPUT_CHUNK_BYTES);

/**
 * Takes bytes, which are another's afterwards: who keeps them copies them. False: no more until
 * {@link OutputPipe.goOn}.
 */
export type TakeBytes = (bytes: Buffer) => boolean;

export class OutputPipe {
  readonly #readFd: number;
  readonly #socket: Socket;
  #take: TakeBytes = () => true;

  /**
   * Owns `readFd` from now on, a pipe that does not block; when this throws the pipe is closed.
   * What comes before {@link handTo} is thrown away.
   */
  constructor(readFd: number) {
    this.#readFd = readFd;
    try {
      this.#socket = new Socket({
        fd: readFd,
        readable: true,
        writable: false,
        onread: { buffer: landing, callback: (length) => this.#take(landing.subarray(0, length)) },
      });
    } catch (error) {
      closeSync(readFd);
      throw error;
    }
    // The socket closes itself after an error: the output ends there.
    this.#socket.on('error', (error) => console.error('reading the output of a command failed:', error));
  }

  /** Whether nobody can write to it any more. */
  get ended(): boolean {
    return this.#socket.destroyed;
  }

  /** What comes from now on goes there. */
  handTo(take: TakeBytes): void {
    this.#take = take;
  }

  /** More is taken again. */
  goOn(): void {
    this.#socket.resume();
  }

  /**
   * Hands on what is in the pipe at this moment, whether it is wanted or not; whatever comes later
   * is thrown away.
   */
  finish(): void {
    this.#drain();
    this.discard();
  }

  /** From now on whatever comes is thrown away. */
  discard(): void {
    this.#take = () => true;
    this.goOn();
  }

  /** Resolves, through the callback, when nobody can write to it any more. */
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
    // A destroyed socket has closed its descriptor, whose number may be another file's by now.
    while (left > 0 && !this.#socket.destroyed) {
      const length = readNow(this.#readFd);
      if (length === 0) return;

      this.#take(landing.subarray(0, length));
      left -= length;
    }
  }
}

/** Bytes read, 0 when there is nothing now or nobody left who could write. */
function readNow(fd: number): number {
  try {
    return readSync(fd, landing);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return 0;

    throw error;
  }
}
