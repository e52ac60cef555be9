// Counters and findings of a run. Owns the last line and the result.
import { RunReport } from '../world/run-report.ts';
import type { Operation } from './document.ts';
import type { Fault } from './judge.ts';

/** `left`: remained after the end. */
export class ApiFuzzReport extends RunReport<Fault | 'left'> {
  requests = 0;
  readonly #succeeded = new Set<string>();
  readonly #operations: readonly Operation[];

  constructor(operations: readonly Operation[], say: (line: string) => void) {
    super(say);
    this.#operations = operations;
  }

  answered({ id }: Operation, status: number, code: string): void {
    this.note(`${id}: ${status}${code}`);
    if (status < 300) this.#succeeded.add(id);
  }

  /** Operations without any successful response. */
  neverSucceeded(): string[] {
    return this.#operations.map(({ id }) => id).filter((id) => !this.#succeeded.has(id));
  }

  lastLine(seed: string): string {
    const seconds = Math.round(this.elapsedMs / 1_000);
    return (
      `fuzz:api: seed ${seed}: ${this.requests} requests to ${this.#operations.length} operations in ${seconds} s ` +
      `(${this.#succeeded.size} of them with a success); ` +
      `answers of 500: ${this.count('fault')}, undocumented statuses: ${this.count('undocumented')}, ` +
      `answers outside their schema: ${this.count('schema')}, ` +
      `bodies taken that the document forbids: ${this.count('taken')}, hung requests: ${this.count('hung')}`
    );
  }
}
