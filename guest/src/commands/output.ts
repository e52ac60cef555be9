// Keeps the tail of a command's output for its response.
import type { OutputPipe } from './output-pipe.ts';
import { Tail } from './tail.ts';

export class Output {
  readonly #pipe: OutputPipe;
  readonly #tail = new Tail();

  constructor(pipe: OutputPipe) {
    this.#pipe = pipe;
    pipe.pipeTo((bytes) => {
      this.#tail.push(bytes);
      return true;
    });
  }

  get truncated(): boolean {
    return this.#tail.truncated;
  }

  /** Reads the bytes now in the pipe and returns the tail; later bytes are discarded. */
  finish(): string {
    this.#pipe.finish();
    return this.#tail.text();
  }
}
