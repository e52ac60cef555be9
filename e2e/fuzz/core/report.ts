// Counters and findings of a fuzzer run. Owns the last line and the result.

/** `fault`: a 500 response. `hung`: none in time. `wrong`: any other violation of the contract. */
type Finding = 'fault' | 'hung' | 'wrong';

export class FuzzReport {
  readonly findings: { finding: Finding; what: string }[] = [];
  requests = 0;
  readonly #statuses = new Map<number, number>();
  readonly #codes = new Map<string, number>();
  readonly #print: (line: string) => void;
  readonly #startedMs = Date.now();

  /** @param say receives each line as soon as it is known */
  constructor(say: (line: string) => void) {
    this.#print = say;
  }

  say(text: string): void {
    this.#print(`${((Date.now() - this.#startedMs) / 1_000).toFixed(1).padStart(6)} s  ${text}`);
  }

  found(finding: Finding, what: string): void {
    this.findings.push({ finding, what });
    this.say(`!! ${finding}: ${what}`);
  }

  /** `what`: operation and outcome. */
  answered(status: number, what: string): void {
    this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + 1);
    this.#codes.set(what, (this.#codes.get(what) ?? 0) + 1);
  }

  count(finding: Finding): number {
    return this.findings.filter((entry) => entry.finding === finding).length;
  }

  get clean(): boolean {
    return this.findings.length === 0;
  }

  /** Outcomes per operation, most frequent first. */
  tally(): string[] {
    return [...this.#codes]
      .sort(([, a], [, b]) => b - a)
      .map(([what, times]) => `${String(times).padStart(6)}  ${what}`);
  }

  lastLine(seed: string): string {
    const statuses = [...this.#statuses].sort(([a], [b]) => a - b).map(([status, times]) => `${times} of ${status}`);
    const seconds = Math.round((Date.now() - this.#startedMs) / 1_000);
    return (
      `fuzz: seed ${seed}: ${this.requests} requests in ${seconds} s (${statuses.join(', ')}); ` +
      `answers of 500: ${this.count('fault')}, hung requests: ${this.count('hung')}, ` +
      `wrong answers: ${this.count('wrong')}`
    );
  }
}
