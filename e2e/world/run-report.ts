// Findings and counted events of a run that a seed determines: the fuzzers and the chaos run.

export abstract class RunReport<Finding extends string> {
  readonly findings: { finding: Finding; what: string }[] = [];
  readonly #tally = new Map<string, number>();
  readonly #print: (line: string) => void;
  readonly #startedMs = Date.now();

  /** @param say receives each line as soon as it is known */
  constructor(say: (line: string) => void) {
    this.#print = say;
  }

  say(text: string): void {
    const seconds = (this.elapsedMs / 1_000).toFixed(1).padStart(6);
    this.#print(`${seconds} s  ${text}`);
  }

  found(finding: Finding, what: string): void {
    this.findings.push({ finding, what });
    this.say(`!! ${finding}: ${what}`);
  }

  /** Counts an event for the summary. */
  note(what: string): void {
    this.#tally.set(what, (this.#tally.get(what) ?? 0) + 1);
  }

  count(finding: Finding): number {
    return this.findings.filter((entry) => entry.finding === finding).length;
  }

  get clean(): boolean {
    return this.findings.length === 0;
  }

  /** Counts of the noted events, most frequent first. */
  tally(): string[] {
    return [...this.#tally]
      .sort(([, a], [, b]) => b - a)
      .map(([what, times]) => `${String(times).padStart(6)}  ${what}`);
  }

  /** Prints counts and findings, then the last line, and sets the exit status of the program. */
  conclude(lastLine: string): void {
    for (const line of this.tally()) console.log(line);
    for (const { finding, what } of this.findings) console.log(`!! ${finding}: ${what}`);
    console.log(lastLine);
    process.exitCode = this.clean ? 0 : 1;
  }

  protected get elapsedMs(): number {
    return Date.now() - this.#startedMs;
  }
}
