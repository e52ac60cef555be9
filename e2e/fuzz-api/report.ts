// Counters and findings of a run. Owns the last line and the result.
import type { Operation } from './document.ts';
import type { Fault } from './judge.ts';

export class ApiFuzzReport {
  readonly findings: { kind: Fault; what: string }[] = [];
  requests = 0;
  readonly #answers = new Map<string, number>();
  readonly #succeeded = new Set<string>();
  readonly #operations: readonly Operation[];
  readonly #print: (line: string) => void;
  readonly #startedMs = Date.now();

  constructor(operations: readonly Operation[], say: (line: string) => void) {
    this.#operations = operations;
    this.#print = say;
  }

  say(text: string): void {
    this.#print(`${((Date.now() - this.#startedMs) / 1_000).toFixed(1).padStart(6)} s  ${text}`);
  }

  found(kind: Fault, what: string): void {
    this.findings.push({ kind, what });
    this.say(`!! ${kind}: ${what}`);
  }

  answered({ id }: Operation, status: number, code: string): void {
    const what = `${id}: ${status}${code}`;
    this.#answers.set(what, (this.#answers.get(what) ?? 0) + 1);
    if (status < 300) this.#succeeded.add(id);
  }

  get clean(): boolean {
    return this.findings.length === 0;
  }

  /** Operations without any successful response. */
  neverSucceeded(): string[] {
    return this.#operations.map(({ id }) => id).filter((id) => !this.#succeeded.has(id));
  }

  /** Outcomes per operation, most frequent first. */
  tally(): string[] {
    return [...this.#answers]
      .toSorted(([, a], [, b]) => b - a)
      .map(([what, times]) => `${String(times).padStart(6)}  ${what}`);
  }

  lastLine(seed: string): string {
    const count = (kind: Fault): number => this.findings.filter((finding) => finding.kind === kind).length;
    const seconds = Math.round((Date.now() - this.#startedMs) / 1_000);
    return (
      `fuzz:api: seed ${seed}: ${this.requests} requests to ${this.#operations.length} operations in ${seconds} s ` +
      `(${this.#succeeded.size} of them with a success); ` +
      `answers of 500: ${count('fault')}, undocumented statuses: ${count('undocumented')}, ` +
      `answers outside their schema: ${count('schema')}, ` +
      `bodies taken that the document forbids: ${count('taken')}, hung requests: ${count('hung')}`
    );
  }
}
