// Alternate screen of the terminal, for output that is redrawn.
import { cut } from './table.ts';

const ENTER = '\u001B[?1049h\u001B[?25l';
const LEAVE = '\u001B[?25h\u001B[?1049l';
const HOME = '\u001B[H';
const CLEAR_LINE = '\u001B[K';
const CLEAR_BELOW = '\u001B[J';

export class Screen {
  readonly #terminal: NodeJS.WriteStream;

  private constructor(terminal: NodeJS.WriteStream) {
    this.#terminal = terminal;
  }

  /** Restores the normal screen when the work ends. */
  static async during<T>(terminal: NodeJS.WriteStream, work: (screen: Screen) => Promise<T>): Promise<T> {
    terminal.write(ENTER);
    try {
      return await work(new Screen(terminal));
    } finally {
      terminal.write(LEAVE);
    }
  }

  /** Draws as many lines as fit. Lines must be unstyled. */
  show(lines: readonly string[]): void {
    const { rows, columns } = this.#terminal;
    const shown = lines.slice(0, rows || lines.length).map((line) => (columns ? cut(line, columns) : line));
    this.#terminal.write(`${HOME}${shown.map((line) => line + CLEAR_LINE).join('\r\n')}${CLEAR_BELOW}`);
  }
}
