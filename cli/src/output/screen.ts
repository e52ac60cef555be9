// A terminal's second screen, for what is shown anew again and again: what was there before is
// there afterwards, however the lines or the window change.
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

  /** Has it for the time of the work, and gives it back however that ends. */
  static async during<T>(terminal: NodeJS.WriteStream, work: (screen: Screen) => Promise<T>): Promise<T> {
    terminal.write(ENTER);
    try {
      return await work(new Screen(terminal));
    } finally {
      terminal.write(LEAVE);
    }
  }

  /** As much of the lines as there is room for. They are without colours. */
  show(lines: readonly string[]): void {
    const { rows, columns } = this.#terminal;
    const shown = lines.slice(0, rows || lines.length).map((line) => (columns ? cut(line, columns) : line));
    this.#terminal.write(`${HOME}${shown.map((line) => line + CLEAR_LINE).join('\r\n')}${CLEAR_BELOW}`);
  }
}
