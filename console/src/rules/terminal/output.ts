// Output as text, with a limit of the marks on one character: xterm.js appends each mark to its
// cell, so that the time for marks without end grows with their square.

const MOST_MARKS = 16;
/** Joins a character, or is ignored between marks (DEL). */
const MARK = String.raw`[\p{M}\p{Cf}\u007f]`;
const TOO_MANY = new RegExp(`(${MARK}{${MOST_MARKS}})${MARK}+`, 'gu');
const LAST = new RegExp(`${MARK}{1,${MOST_MARKS}}$`, 'u');
/** Code units of the most marks. */
const LAST_UNITS = 2 * MOST_MARKS;

export class OutputText {
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  /** Marks at the end of the output so far. */
  #marks = '';

  /** The text of the next bytes, which may split a character. */
  decode(bytes: Uint8Array): string {
    const text = this.#marks + this.#decoder.decode(bytes, { stream: true });
    const limited = text.replace(TOO_MANY, '$1');
    const added = limited.slice(this.#marks.length);
    this.#marks = LAST.exec(limited.slice(-LAST_UNITS))?.[0] ?? '';
    return added;
  }
}
