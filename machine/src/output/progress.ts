// Progress of long steps: one line per step, updated in place. Steps of less than a second are not
// shown. Written to stderr: stdout holds only a verb's result.

const SILENT_MS = 1_000;
/** A terminal line is rewritten; a log gets occasional new lines. */
const TERMINAL_REFRESH_MS = 250;
const LOG_REFRESH_MS = 5_000;

interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** Reports a step's progress. `note` is short and replaces the previous one. */
export type Report = (note: string) => void;

export class Progress {
  readonly #output: Output;
  readonly #now: () => number;

  constructor(output: Output = process.stderr, now: () => number = () => performance.now()) {
    this.#output = output;
    this.#now = now;
  }

  /** Runs a step and shows its progress after one second. Rethrows its failure. */
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

  say(text: string): void {
    this.#output.write(`${text}\n`);
  }

  #rewrite(text: string): void {
    if (this.#output.isTTY === true) {
      // A terminal of unknown width reports 0.
      this.#output.write(`\r\u001B[2K${text.slice(0, (this.#output.columns || 80) - 1)}`);
    } else {
      this.#output.write(`${text}\n`);
    }
  }

  #finish(text: string): void {
    this.#output.write(this.#output.isTTY === true ? `\r\u001B[2K${text}\n` : `${text}\n`);
  }
}
