// Fault log: the record of injected faults and their times, which are the only excuses for a
// response, a status or a loss. Judges nothing itself. `api`, `host`, `database`: the part was
// down. `disk`: full. `qemu`: killed, or paused. `guest`: its daemon was paused or killed.
// `agent`: a bridge or agent was killed.
import { setTimeout as delay } from 'node:timers/promises';

export type FaultKind =
  | 'api'
  | 'host'
  | 'database'
  | 'disk'
  | 'qemu-killed'
  | 'qemu-hangs'
  | 'guest-hangs'
  | 'guest-killed'
  | 'agent-killed';

export interface Fault {
  readonly kind: FaultKind;
  /** Sandbox whose VM is affected; null for shared faults. */
  readonly sandboxId: string | null;
  readonly fromMs: number;
  /** null while the fault lasts. */
  toMs: number | null;
}

/** A past fault shows for this long: steps are retried, connections reopen. */
const AFTERMATH_MS = 15_000;

export const SHARED_FAULTS = ['api', 'host', 'database', 'disk'] as const satisfies readonly FaultKind[];
/** Faults that end calls to a guest and its agents, and harm nothing else of the VM. */
export const AGENT_FAULTS = ['guest-killed', 'agent-killed'] as const satisfies readonly FaultKind[];
export const VM_FAULTS = ['qemu-killed', 'qemu-hangs', 'guest-hangs'] as const satisfies readonly FaultKind[];

export class FaultLog {
  readonly #faults: Fault[] = [];

  begin(kind: FaultKind, sandboxId: string | null = null, fromMs = Date.now()): Fault {
    const fault: Fault = { kind, sandboxId, fromMs, toMs: null };
    this.#faults.push(fault);
    return fault;
  }

  end(fault: Fault): void {
    fault.toMs ??= Date.now();
  }

  /** Ends the faults of one VM. */
  endOf(kind: FaultKind, sandboxId: string): void {
    for (const fault of this.#faults) if (fault.kind === kind && fault.sandboxId === sandboxId) this.end(fault);
  }

  /** True if one of the faults, shared or of this sandbox, lasted or had just ended then. */
  excuses(kinds: readonly FaultKind[], fromMs: number, toMs: number, sandboxId: string | null = null): boolean {
    return this.#faults.some(
      (fault) =>
        kinds.includes(fault.kind) &&
        (fault.sandboxId === null || fault.sandboxId === sandboxId) &&
        fault.fromMs <= toMs &&
        (fault.toMs === null || fault.toMs + AFTERMATH_MS >= fromMs),
    );
  }

  /** Faults of a kind that began in the period. */
  startedBetween(kind: FaultKind, fromMs: number, toMs: number, sandboxId: string | null = null): Fault[] {
    return this.#faults.filter(
      (fault) => fault.kind === kind && fault.sandboxId === sandboxId && fault.fromMs >= fromMs && fault.fromMs <= toMs,
    );
  }

  /** Last moment up to `atMs` without the fault. */
  lastFreeOf(kind: FaultKind, atMs: number): number {
    const covering = this.#faults.filter(
      (fault) => fault.kind === kind && fault.fromMs <= atMs && (fault.toMs ?? Infinity) >= atMs,
    );
    return Math.min(atMs, ...covering.map(({ fromMs }) => fromMs));
  }

  /**
   * Start of the period whose events may be unnoticed at `atMs`: `afterMs` back, and further if the
   * observers were down or had just returned.
   */
  unnoticedSince(kinds: readonly FaultKind[], atMs: number, afterMs: number): number {
    let fromMs = atMs - afterMs;
    const away = this.#faults.filter(({ kind, sandboxId }) => kinds.includes(kind) && sandboxId === null);
    for (const fault of away.sort((a, b) => b.fromMs - a.fromMs))
      if (fault.fromMs <= atMs && (fault.toMs ?? Infinity) >= fromMs) fromMs = Math.min(fromMs, fault.fromMs - afterMs);

    return fromMs;
  }

  get active(): Fault[] {
    return this.#faults.filter(({ toMs }) => toMs === null);
  }

  /** Resolves when no shared fault lasts. */
  async cleared(signal: AbortSignal): Promise<void> {
    while (this.active.some(({ sandboxId }) => sandboxId === null)) await delay(100, undefined, { signal });
  }
}
