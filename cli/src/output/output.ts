// Output of a command: results on stdout, notes and progress on stderr.
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
  /** Whether to print the API's response as JSON. */
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

  /** Prints the response for `--json`. */
  object(answer: unknown): void {
    this.line(JSON.stringify(answer, null, 2));
  }

  line(text = ''): void {
    this.#streams.stdout.write(`${text}\n`);
  }

  /** Writes bytes unchanged. Resolves when the stream accepts more. */
  async bytes(content: string | Uint8Array): Promise<void> {
    if (this.#streams.stdout.write(content)) return;
    await once(this.#streams.stdout, 'drain');
  }

  /** Width of the terminal; undefined unless stdout is one. */
  get columns(): number | undefined {
    const { stdout } = this.#streams;
    // A terminal of unknown width reports 0.
    return stdout.isTTY ? stdout.columns || undefined : undefined;
  }

  /**
   * Prints a table as wide as the terminal, or `empty` on stderr. @param titles print the header
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

  fields(fields: readonly Field[]): void {
    fieldLines(fields, (style, text) => this.style(style, text)).forEach((line) => this.line(line));
  }

  /** Prints to stderr. Escape foreign text with plainText first. */
  note(text: string): void {
    this.#streams.stderr.write(`${text}\n`);
  }

  /** Applies the style if the stream is a terminal with colours. */
  style(style: Style, text: string, stream: 'stdout' | 'stderr' = 'stdout'): string {
    return this.#colour[stream] ? styleText(style, text, { validateStream: false }) : text;
  }

  /** Shows progress on stderr after one second. */
  async step<T>(title: string, work: (report: Report) => Promise<T>): Promise<T> {
    return await this.#progress.step(title, work);
  }
}
