// One output of a command whose answer has its tail: keeps that until the command has ended.
import type { OutputPipe } from './output-pipe.ts';
import { Tail } from './tail.ts';

export class Output {
  readonly #pipe: OutputPipe;
  readonly #tail = new Tail();

  constructor(pipe: OutputPipe) {
    this.#pipe = pipe;
    pipe.handTo((bytes) => {
      this.#tail.push(bytes);
      return true;
    });
  }

  get truncated(): boolean {
    return this.#tail.truncated;
  }

  /**
   * Takes what is in the pipe at this moment and gives back the tail; whatever comes later is
   * thrown away.
   */
  finish(): string {
    this.#pipe.finish();
    return this.#tail.text();
  }
}
