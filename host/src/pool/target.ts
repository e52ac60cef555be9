// How many restored machines shall wait for creates: pure arithmetic over the creates of late, how
// long a machine takes to be made, and the room for it. Must not know machines.

/** For how long a create speaks for the ones to come. */
export const DEMAND_KEPT_MS = 10 * 60_000;

/**
 * What a machine that waits takes of the host's memory, in MiB: QEMU, its translation buffer and
 * the pages the guest made its own; 70 when measured.
 */
export const WAITING_MACHINE_MIB = 96;

export interface PoolLimits {
  /** Kept ready whatever is asked for. */
  min: number;
  /** Never more than this; 0: there is no pool. */
  max: number;
}

interface PoolDemand {
  /** When creates came in, oldest first, in milliseconds of one clock. */
  createsAtMs: readonly number[];
  nowMs: number;
  /** How long one machine takes to be made. */
  refillMs: number;
}

/** Memory in MiB. */
export interface PoolMemory {
  /** Promised to no VM. */
  unpromisedMib: number;
  /**
   * What the kernel calls available, beyond the reserve of the machine; below zero when the reserve
   * is touched.
   */
  spareMib: number;
}

/**
 * As many as were asked for in the busiest span of the last {@link DEMAND_KEPT_MS}, where a span is
 * as long as filling the whole pool takes: what comes within it must be there beforehand. At least
 * `min`, at most `max`.
 */
export function poolTarget({ createsAtMs, nowMs, refillMs }: PoolDemand, { min, max }: PoolLimits): number {
  const recent = createsAtMs.filter((atMs) => atMs > nowMs - DEMAND_KEPT_MS);
  const spanMs = refillMs * max;
  let busiest = 0;
  let first = 0;
  for (const [last, atMs] of recent.entries()) {
    while ((recent[first] ?? atMs) < atMs - spanMs) first += 1;

    busiest = Math.max(busiest, last - first + 1);
  }
  return Math.min(max, Math.max(min, busiest));
}

/**
 * How many machines there may be, given how many there are. They live on memory that is promised to
 * nobody, and leave the reserve alone: VMs never wait for the pool to shrink.
 */
export function poolRoom(count: number, { unpromisedMib, spareMib }: PoolMemory): number {
  const byPromise = Math.floor(unpromisedMib / WAITING_MACHINE_MIB);
  const byUse = count + Math.floor(spareMib / WAITING_MACHINE_MIB);
  return Math.max(0, Math.min(byPromise, byUse));
}
