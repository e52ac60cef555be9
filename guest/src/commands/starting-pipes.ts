// Pipes of a command that is being started: the ends for the command, and the ends for the daemon.
// Owns their descriptors until the start has succeeded.
import { closeSync } from 'node:fs';
import { Socket } from 'node:net';
import type { InputPipes } from './input-pipes.ts';
import { OutputPipe } from './output-pipe.ts';
import type { PipeStore } from './pipes.ts';

export class StartingPipes {
  /** The command's ends, in the order of the calls. */
  readonly childFds: number[] = [];
  readonly #inputs: InputPipes;
  readonly #outputs: PipeStore;
  readonly #kept: (() => void)[] = [];

  constructor(inputs: InputPipes, outputs: PipeStore) {
    this.#inputs = inputs;
    this.#outputs = outputs;
  }

  /** Pipe that the command writes to. */
  async output(): Promise<OutputPipe> {
    const { readFd, writeFd } = await this.#outputs.take();
    this.childFds.push(writeFd);
    const output = new OutputPipe(readFd);
    this.#kept.push(() => output.close());
    return output;
  }

  /** Pipe that the command reads. */
  async input(): Promise<Socket> {
    const { readFd, writeFd } = await this.#inputs.take();
    this.childFds.push(readFd);
    try {
      const input = new Socket({ fd: writeFd, readable: false, writable: true });
      // EPIPE: no reader is left.
      input.on('error', () => undefined);
      this.#kept.push(() => void input.destroy());
      return input;
    } catch (error) {
      closeSync(writeFd);
      throw error;
    }
  }

  /** From now on only the command and its children hold its ends. */
  closeChildEnds(): void {
    this.childFds.splice(0).forEach((fd) => closeSync(fd));
  }

  /** Closes the daemon's ends when the command was not started. */
  closeKept(): void {
    this.#kept.forEach((close) => close());
  }
}
