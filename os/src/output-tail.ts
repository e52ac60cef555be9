// The bounded tail of a program's output, for error messages.

const KEPT_CHARACTERS = 4_096;

export class OutputTail {
  #text = '';

  add(chunk: Buffer): void {
    this.#text = (this.#text + chunk.toString('utf8')).slice(-KEPT_CHARACTERS);
  }

  text(): string {
    return this.#text.trim();
  }
}
