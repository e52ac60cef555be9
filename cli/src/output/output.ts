// Everything that a command writes: its result on stdout, what a person may want to know on stderr.
// Knows what the two can show.
import { once } from 'node:events';
import { styleText } from 'node:util';
import { Progress, type Report } from '@berth/machine/output/progress.ts';
import { fieldLines, type Field } from './fields.ts';
import type { Style } from './style.ts';
import { tableLines, type Column } from './table.ts';

export interface OutputStreams {
  stdout: NodeJS.WriteStream;
  stderr: NodeJS.WriteStream;
}

export class Output {
  /** Whether the answer of the API is wanted as it is. */
  readonly json: boolean;
  readonly #streams: OutputStreams;
  readonly #colour: { stdout: boolean; stderr: boolean };
  readonly #progress: Progress;

  constructor(
    streams: OutputStreams,
    environment: Readonly<NodeJS.ProcessEnv>,
    { json = false }: { json?: boolean } = {},
  ) {
    this.json = json;
    this.#streams = streams;
    const wanted = (environment['NO_COLOR'] ?? '') === '' && environment['TERM'] !== 'dumb';
    this.#colour = { stdout: wanted && streams.stdout.isTTY, stderr: wanted && streams.stderr.isTTY };
    this.#progress = new Progress(streams.stderr);
  }

  /** The one object of `--json`: exactly what the API answered. */
  object(answer: unknown): void {
    this.line(JSON.stringify(answer, null, 2));
  }

  /** A line of the result. */
  line(text = ''): void {
    this.#streams.stdout.write(`${text}\n`);
  }

  /** Bytes of the result, as they are. Resolves when the stream takes more. */
  async bytes(content: string | Uint8Array): Promise<void> {
    if (this.#streams.stdout.write(content)) return;
    await once(this.#streams.stdout, 'drain');
  }

  /** Cells of a line of stdout where it is a terminal. */
  get columns(): number | undefined {
    const { stdout } = this.#streams;
    // One that does not know its own width says 0.
    return stdout.isTTY ? stdout.columns || undefined : undefined;
  }

  /**
   * Rows in columns, as wide as the terminal; `empty` is said on stderr instead of a table without
   * rows. @param titles whether to begin with them
   */
  table<Row>(
    columns: readonly Column<Row>[],
    rows: readonly Row[],
    empty: string,
    { titles = true }: { titles?: boolean } = {},
  ): void {
    if (rows.length === 0) {
      this.note(empty);
      return;
    }
    const [first = '', ...lines] = tableLines(columns, rows, {
      width: this.columns,
      paint: (style, text) => this.style(style, text),
    });
    if (titles) this.line(this.style('bold', first));
    lines.forEach((line) => this.line(line));
  }

  /** Names and values, one to a line; those without a value are left out. */
  fields(fields: readonly Field[]): void {
    fieldLines(fields, (style, text) => this.style(style, text)).forEach((line) => this.line(line));
  }

  /** Something for people, on stderr. Text of others in it goes through plainText first. */
  note(text: string): void {
    this.#streams.stderr.write(`${text}\n`);
  }

  /** Styled where stdout (or the stream that is named) is a terminal that is to have colours. */
  style(style: Style, text: string, stream: 'stdout' | 'stderr' = 'stdout'): string {
    return this.#colour[stream] ? styleText(style, text, { validateStream: false }) : text;
  }

  /** Shows a step on stderr while it runs, once it takes more than a second. */
  async step<T>(title: string, work: (report: Report) => Promise<T>): Promise<T> {
    return await this.#progress.step(title, work);
  }
}
