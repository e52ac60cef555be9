// Counters and contradictions of a chaos run. Owns the last line and the result.
import { RunReport } from '../../world/run-report.ts';

export type Finding =
  | 'sandbox-lost'
  | 'file-lost'
  | 'leaked'
  | 'interval-overlapping'
  | 'interval-unclosed'
  | 'interval-wrong'
  | 'turn-replayed'
  | 'reply-lost'
  | 'cursor-invalid'
  | 'session-stuck'
  | 'contradiction';

interface Counts {
  operations: number;
  kills: number;
  /** Faults injected without a kill. */
  others: number;
  sandboxes: number;
  files: number;
  sessions: number;
  turns: number;
  /** Replies that a client has read. */
  replies: number;
}

export class Report extends RunReport<Finding> {
  readonly counts: Counts = {
    operations: 0,
    kills: 0,
    others: 0,
    sandboxes: 0,
    files: 0,
    sessions: 0,
    turns: 0,
    replies: 0,
  };
  readonly slowOnes: string[] = [];

  /** Reports a contradiction, once. */
  override found(finding: Finding, what: string): void {
    if (this.findings.some((entry) => entry.finding === finding && entry.what === what)) return;
    super.found(finding, what);
  }

  /** Reports a slow sandbox, which is no contradiction. */
  slow(what: string): void {
    this.slowOnes.push(what);
    this.say(what);
  }

  lastLine(seed: string, minutes: number): string {
    const { operations, kills, others, sandboxes, files, sessions, turns, replies } = this.counts;
    return [
      `chaos: seed ${seed}, ${minutes} min: ${operations} operations, ${kills} kills, ${others} other disturbances`,
      `acknowledged sandboxes lost: ${this.count('sandbox-lost')} of ${sandboxes}`,
      `acknowledged files lost: ${this.count('file-lost')} of ${files}`,
      `leaked VMs, namespaces and files: ${this.count('leaked')}`,
      `usage intervals overlapping: ${this.count('interval-overlapping')}, ` +
        `unclosed: ${this.count('interval-unclosed')}, wrong: ${this.count('interval-wrong')}`,
      `agent turns replayed: ${this.count('turn-replayed')} of ${turns}, ` +
        `replies lost: ${this.count('reply-lost')} of ${replies}, invalid cursors: ${this.count('cursor-invalid')}, ` +
        `stuck sessions: ${this.count('session-stuck')} of ${sessions}`,
      `other contradictions: ${this.count('contradiction')}`,
    ].join('; ');
  }
}
