// Named points at which tests kill a program, as `kill -9` would. Inert unless armed
// (BERTH_CRASH_AT, read by the program's own config.ts). Each program has its own list of points.
import { readFileSync } from 'node:fs';

export class CrashPoints<Point extends string> {
  readonly #points: readonly Point[];
  #armed: { point: Point; passesLeft: number } | null = null;
  /** File that holds the armed point, empty for none, and its text as last read. */
  #file: { path: string; text: string } | null = null;

  constructor(points: readonly Point[]) {
    this.#points = points;
  }

  /**
   * Arms one point: `name`, or `name#n` for its nth pass; or `@path`, a file with such a text,
   * rewritten while the program runs. Throws for a name that is not in the list.
   */
  arm(text: string): void {
    if (text.startsWith('@')) {
      this.#file = { path: text.slice(1), text: '' };
      this.#followFile();
      return;
    }
    const [name, nth = '1'] = text.split('#');
    const point = this.#points.find((known) => known === name);
    if (point === undefined || !/^[1-9]\d{0,3}$/.test(nth))
      throw new Error(`BERTH_CRASH_AT: '${text}' is not one of ${this.#points.join(', ')} (with #n for the nth pass)`);

    this.#armed = { point, passesLeft: Number(nth) };
  }

  /** Ends this process without any clean-up when the point is armed and this is its pass. */
  pass(point: Point): void {
    this.#followFile();
    if (this.#armed?.point === point && --this.#armed.passesLeft === 0) process.kill(process.pid, 'SIGKILL');
  }

  #followFile(): void {
    if (this.#file === null) return;
    const text = readFileSync(this.#file.path, 'utf8');
    if (text === this.#file.text) return;
    this.#file.text = text;
    if (text === '') this.#armed = null;
    else this.arm(text);
  }
}
