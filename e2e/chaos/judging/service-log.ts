// Log of the installation under test: explains a finding whose run cannot be repeated.

/** Newest lines that are kept. */
const KEPT_LINES = 50_000;
const SANDBOX_ID = /\bsbx_[a-z0-9]+/g;

export class ServiceLog {
  readonly #lines: string[] = [];
  /** Begun line of each part. */
  readonly #begun = new Map<string, string>();

  add(part: string, chunk: Buffer): void {
    const lines = `${this.#begun.get(part) ?? ''}${chunk.toString()}`.split('\n');
    this.#begun.set(part, lines.pop() ?? '');
    this.#lines.push(...lines.map((line) => `${part}: ${line}`));
    if (this.#lines.length > 2 * KEPT_LINES) this.#lines.splice(0, this.#lines.length - KEPT_LINES);
  }

  /** Lines that name a sandbox of the findings, oldest first. */
  about(findings: readonly string[]): string[] {
    const ids = new Set(findings.flatMap((what) => what.match(SANDBOX_ID) ?? []));
    return this.#lines.filter((line) => (line.match(SANDBOX_ID) ?? []).some((id) => ids.has(id)));
  }
}
