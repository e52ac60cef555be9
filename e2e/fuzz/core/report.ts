// Counters and findings of a fuzzer run. Owns the last line and the result.
import { RunReport } from '../../world/run-report.ts';

/** `fault`: a 500 response. `hung`: none in time. `wrong`: any other violation of the contract. */
type Finding = 'fault' | 'hung' | 'wrong';

export class FuzzReport extends RunReport<Finding> {
  requests = 0;
  readonly #statuses = new Map<number, number>();

  /** `what`: operation and outcome. */
  answered(status: number, what: string): void {
    this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + 1);
    this.note(what);
  }

  lastLine(seed: string): string {
    const statuses = [...this.#statuses].sort(([a], [b]) => a - b).map(([status, times]) => `${times} of ${status}`);
    const seconds = Math.round(this.elapsedMs / 1_000);
    return (
      `fuzz: seed ${seed}: ${this.requests} requests in ${seconds} s (${statuses.join(', ')}); ` +
      `answers of 500: ${this.count('fault')}, hung requests: ${this.count('hung')}, ` +
      `wrong answers: ${this.count('wrong')}`
    );
  }
}
