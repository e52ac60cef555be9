// One output of a command: reads its pipe for as long as anybody holds the other end, keeps the tail until the command has ended and
// throws the rest away, so that what a command left running in the background never blocks on a full pipe.
import { closeSync, readSync } from 'node:fs';
import { Socket } from 'node:net';
import { Tail } from './tail.ts';

/** A pipe holds 1 MiB at most, unless root made it larger: what a shell wrote before its end is within that. */
const DRAIN_BYTES = 1_048_576;

/** Every read lands here first: all of them happen in one thread, and none keeps a reference. */
const landing = Buffer.allocUnsafeSlow(65_536);

export class Output {
  readonly #tail = new Tail();
  readonly #readFd: number;
  readonly #socket: Socket;
  #keeping = true;

  /** Owns `readFd` from now on, a pipe that does not block; when this throws the pipe is closed. */
  constructor(readFd: number) {
    this.#readFd = readFd;
    try {
      this.#socket = new Socket({
        fd: readFd,
        readable: true,
        writable: false,
        onread: {
          buffer: landing,
          callback: (length) => {
            if (this.#keeping) {
              this.#tail.push(landing.subarray(0, length));
            }
            return true;
          },
        },
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

  get truncated(): boolean {
    return this.#tail.truncated;
  }

  /** Takes what is in the pipe at this moment and gives back the tail; whatever comes later is thrown away. */
  finish(): string {
    this.#drain();
    this.#keeping = false;
    return this.#tail.text();
  }

  /** Resolves, through the callback, when nobody can write to it any more. */
  onEnded(listener: () => void): void {
    if (this.ended) {
      listener();
    } else {
      this.#socket.once('close', listener);
    }
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
      if (length === 0) {
        return;
      }
      this.#tail.push(landing.subarray(0, length));
      left -= length;
    }
  }
}

/** Bytes read, 0 when there is nothing now or nobody left who could write. */
function readNow(fd: number): number {
  try {
    return readSync(fd, landing);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') {
      return 0;
    }
    throw error;
  }
}
