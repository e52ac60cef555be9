// What the operator sees while something takes its time: a line per step, brought up to date. Steps
// of less than a second stay silent. Written to stderr: a verb's result stands alone on stdout.

const SILENT_MS = 1_000;
/** On a terminal the line is rewritten; in a log a new line now and then is enough. */
const TERMINAL_REFRESH_MS = 250;
const LOG_REFRESH_MS = 5_000;

interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** Tells how far a step is. `note` is short and replaces the one before. */
export type Report = (note: string) => void;

export class Progress {
  readonly #output: Output;
  readonly #now: () => number;

  constructor(output: Output = process.stderr, now: () => number = () => performance.now()) {
    this.#output = output;
    this.#now = now;
  }

  /**
   * Runs a step and shows it while it runs, once it takes more than a second. What the step throws
   * passes through.
   */
  async step<T>(title: string, work: (report: Report) => Promise<T>): Promise<T> {
    const startedAt = this.#now();
    let note = '';
    let shown: string | null = null;
    const line = (): string =>
      `• ${title}: ${Math.floor((this.#now() - startedAt) / 1000)} s${note === '' ? '' : `, ${note}`}`;
    const show = (): void => {
      if (this.#now() - startedAt < SILENT_MS) return;

      shown = line();
      this.#rewrite(shown);
    };
    const first = setTimeout(show, SILENT_MS);
    const timer = setInterval(show, this.#output.isTTY === true ? TERMINAL_REFRESH_MS : LOG_REFRESH_MS);
    try {
      const result = await work((text) => {
        note = text.replaceAll(/\s+/g, ' ').trim();
      });
      if (shown !== null || this.#now() - startedAt >= SILENT_MS)
        this.#finish(`✓ ${title} (${((this.#now() - startedAt) / 1000).toFixed(1)} s)`);

      return result;
    } catch (error) {
      this.#finish(`✗ ${title} (${((this.#now() - startedAt) / 1000).toFixed(1)} s)`);
      throw error;
    } finally {
      clearTimeout(first);
      clearInterval(timer);
    }
  }

  /** A line of its own. */
  say(text: string): void {
    this.#output.write(`${text}\n`);
  }

  #rewrite(text: string): void {
    if (this.#output.isTTY === true) {
      // A terminal that does not know how wide it is says 0.
      this.#output.write(`\r\u001B[2K${text.slice(0, (this.#output.columns || 80) - 1)}`);
    } else {
      this.#output.write(`${text}\n`);
    }
  }

  #finish(text: string): void {
    this.#output.write(this.#output.isTTY === true ? `\r\u001B[2K${text}\n` : `${text}\n`);
  }
}
