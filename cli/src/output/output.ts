// Output of a command: results on stdout, notes and progress on stderr.
import { once } from 'node:events';
import { styleText } from 'node:util';
import { Progress, type Report } from '@berth/machine/output/progress.ts';
import { fieldLines, type Field } from './fields.ts';
import { plainJson } from './plain-text.ts';
import type { Style } from './style.ts';
import { tableLines, type Column } from './table.ts';

export interface OutputStreams {
  stdout: NodeJS.WriteStream;
  stderr: NodeJS.WriteStream;
}

interface OutputOptions {
  json?: boolean;
  /** Adds the options of the call to the commands of a hint. */
  completeHints?: (text: string) => string;
}

export class Output {
  /** Whether to print the API's response as JSON. */
  readonly json: boolean;
  readonly #streams: OutputStreams;
  readonly #colour: { stdout: boolean; stderr: boolean };
  readonly #progress: Progress;
  readonly #completeHints: (text: string) => string;

  constructor(
    streams: OutputStreams,
    environment: Readonly<NodeJS.ProcessEnv>,
    { json = false, completeHints = (text) => text }: OutputOptions = {},
  ) {
    this.#completeHints = completeHints;
    this.json = json;
    this.#streams = streams;
    const wanted = (environment['NO_COLOR'] ?? '') === '' && environment['TERM'] !== 'dumb';
    this.#colour = { stdout: wanted && streams.stdout.isTTY, stderr: wanted && streams.stderr.isTTY };
    this.#progress = new Progress(streams.stderr);
  }

  /** Prints the response for `--json`. */
  object(answer: unknown): void {
    this.line(plainJson(answer, 2));
  }

  /** Prints a value as a line of JSON. */
  objectLine(answer: unknown): void {
    this.line(plainJson(answer));
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
      this.hint(empty);
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

  /** Prints to stderr, with the options of the call in the commands that the text suggests. */
  hint(text: string): void {
    this.note(this.#completeHints(text));
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
