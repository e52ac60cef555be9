// Target size of the warm pool: pure arithmetic over recent creates, the refill time and free
// memory. Must not know VMs.

/** Time for which a create counts as demand. */
export const DEMAND_KEPT_MS = 10 * 60_000;

/**
 * Host memory of a waiting VM, in MiB: QEMU, its translation buffer and the guest's dirty pages; 70
 * measured.
 */
export const WAITING_VM_MIB = 96;

export interface PoolLimits {
  /** Kept ready even without demand. */
  min: number;
  /** Upper limit; 0 disables the pool. */
  max: number;
}

interface PoolDemand {
  /** Arrival times of creates, oldest first, in milliseconds of one clock. */
  createsAtMs: readonly number[];
  nowMs: number;
  refillMs: number;
}

/** Memory in MiB. */
export interface PoolMemory {
  /** Memory not promised to any VM. */
  unpromisedMib: number;
  /**
   * The kernel's available memory minus the host's reserve; negative when the reserve is in use.
   */
  spareMib: number;
}

/**
 * Demand of the busiest span in the last {@link DEMAND_KEPT_MS}, limited to `min` and `max`. A span
 * is the time to fill the whole pool: VMs requested within it must exist beforehand.
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
 * Number of pool VMs that memory allows, given the current count. Pool VMs use only unpromised
 * memory beyond the reserve: VMs never wait for the pool to shrink.
 */
export function poolRoom(count: number, { unpromisedMib, spareMib }: PoolMemory): number {
  const byPromise = Math.floor(unpromisedMib / WAITING_VM_MIB);
  const byUse = count + Math.floor(spareMib / WAITING_VM_MIB);
  return Math.max(0, Math.min(byPromise, byUse));
}
