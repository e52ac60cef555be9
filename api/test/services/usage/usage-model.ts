// Test model of metering: a separate ledger, with sums by brute force. Shares only one rule with
// the service: an instant counts as the millisecond that contains it.

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

interface Interval {
  sandboxId: string;
  projectId: string;
  endUserId: string | null;
  vcpu: number;
  beginsMs: number;
  /** null: running. */
  endsMs: number | null;
}

interface UsageQuery {
  projectId?: string;
  endUserId?: string;
  fromMs: number;
  toMs: number;
}

export class UsageModel {
  readonly #intervals: Interval[] = [];
  readonly #running = new Map<string, Interval>();

  wake(sandbox: Omit<Interval, 'beginsMs' | 'endsMs'>, atMs: number): void {
    const stretch = { ...sandbox, beginsMs: atMs, endsMs: null };
    this.#intervals.push(stretch);
    this.#running.set(sandbox.sandboxId, stretch);
  }

  end(sandboxId: string, atMs: number): void {
    const stretch = this.#running.get(sandboxId);
    if (stretch === undefined) throw new Error(`the sandbox ${sandboxId} does not run`);
    stretch.endsMs = Math.max(stretch.beginsMs, atMs);
    this.#running.delete(sandboxId);
  }

  /** Start of the current run. */
  runsSince(sandboxId: string): number | undefined {
    return this.#running.get(sandboxId)?.beginsMs;
  }

  resize(sandboxId: string, vcpu: number, atMs: number): void {
    const { projectId, endUserId } = this.#running.get(sandboxId) ?? { projectId: '', endUserId: null };
    this.end(sandboxId, atMs);
    this.wake({ sandboxId, projectId, endUserId, vcpu }, atMs);
  }

  /** Milliseconds in the window; a running interval counts until the window's end. */
  usedMs(query: UsageQuery): number {
    return this.#parts(query).reduce((sum, { ms }) => sum + ms, 0);
  }

  /** The last days in UTC, oldest first. */
  byDay(days: number, nowMs: number): { date: string; machineHours: number }[] {
    const todayMs = Math.floor(nowMs / DAY_MS) * DAY_MS;
    return Array.from({ length: days }, (_, index) => {
      const fromMs = todayMs - (days - 1 - index) * DAY_MS;
      const usedMs = this.usedMs({ fromMs, toMs: Math.min(nowMs, fromMs + DAY_MS) });
      return { date: new Date(fromMs).toISOString().slice(0, 10), machineHours: usedMs / HOUR_MS };
    });
  }

  byEndUser(query: UsageQuery): Map<string | null, { ms: number; vcpuMs: number }> {
    const sums = new Map<string | null, { ms: number; vcpuMs: number }>();
    for (const { stretch, ms } of this.#parts(query)) {
      const sum = sums.get(stretch.endUserId) ?? { ms: 0, vcpuMs: 0 };
      sums.set(stretch.endUserId, { ms: sum.ms + ms, vcpuMs: sum.vcpuMs + ms * stretch.vcpu });
    }
    return sums;
  }

  /** The end users as the API lists them: by their hours, at one dollar a vCPU hour. */
  ranking(query: UsageQuery): { endUserId: string; machineHours: number; estimatedCogsUsd: number }[] {
    return [...this.byEndUser(query)]
      .flatMap(([endUserId, sum]) => (endUserId === null ? [] : [{ endUserId, ...sum }]))
      .sort((one, other) => other.ms - one.ms || (one.endUserId < other.endUserId ? -1 : 1))
      .map(({ endUserId, ms, vcpuMs }) => ({
        endUserId,
        machineHours: ms / HOUR_MS,
        estimatedCogsUsd: Math.round((vcpuMs / HOUR_MS) * 1_000_000) / 1_000_000,
      }));
  }

  get stretches(): number {
    return this.#intervals.length;
  }

  #parts({ projectId, endUserId, fromMs, toMs }: UsageQuery): { stretch: Interval; ms: number }[] {
    return this.#intervals
      .filter((stretch) => projectId === undefined || stretch.projectId === projectId)
      .filter((stretch) => endUserId === undefined || stretch.endUserId === endUserId)
      .map((stretch) => ({ stretch, ms: Math.min(stretch.endsMs ?? toMs, toMs) - Math.max(stretch.beginsMs, fromMs) }))
      .filter(({ ms }) => ms > 0);
  }
}
