// What a host says of a machine, made fit to be shown and stored. The guest is hostile: each of its
// numbers is held against what its machine can have at most, so that none is absurd, none breaks a
// sum, and no share is beyond the whole. Within those bounds it can lie, to the harm of nobody but
// itself.
import type { Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';
import type { LiveMetrics } from '@berth/contract/metrics/metrics.ts';
import type { VmMetrics } from '@berth/protocol/calls/metrics.ts';

const MIB_PER_GIB = 1_024;
/**
 * Ten years. A guest counts from the boot of the template it was restored from, so its sandbox's
 * age is no bound.
 */
const UPTIME_MAX_SECONDS = 10 * 366 * 86_400;
/**
 * PID_MAX_LIMIT of Linux: more processes than that there cannot be, and a load counts processes.
 */
const PROCESSES_MAX = 4_194_304;
const COUNTER_MAX = Number.MAX_SAFE_INTEGER;

/** The figures of one look, each within bounds. Shares are 0 to 1. */
export interface VmFigures {
  guest: LiveMetrics['guest'];
  host: LiveMetrics['host'];
  memoryUsed: number;
  diskUsed: number;
}

/** A look at the counters of a machine's processors. */
export interface CpuLook {
  uptimeSeconds: number;
  busySeconds: number;
}

/**
 * `most` is what the machine can have at most. The share of the processors is not known from one
 * look: see {@link cpuShareBetween}.
 */
export function boundFigures({ guest, host }: VmMetrics, most: Allocation): VmFigures {
  const vcpu = bound(guest.vcpu, most.vcpu);
  const uptimeSeconds = bound(guest.uptimeSeconds, UPTIME_MAX_SECONDS);
  const memory = boundPart(guest.memoryUsedMib, guest.memoryTotalMib, most.memoryGb * MIB_PER_GIB);
  const disk = boundPart(guest.diskUsedMib, guest.diskTotalMib, most.diskGb * MIB_PER_GIB);
  const [oneMinute, fiveMinutes, fifteenMinutes] = guest.load.map((load) => bound(load, PROCESSES_MAX)) as [
    number,
    number,
    number,
  ];
  return {
    guest: {
      uptimeSeconds,
      // Processors cannot have worked for longer than there were processors.
      cpu: { vcpu, usedPercent: null, busySeconds: bound(guest.cpuBusyMs / 1_000, uptimeSeconds * most.vcpu) },
      load: { oneMinute, fiveMinutes, fifteenMinutes },
      memory: { totalMib: memory.total, usedMib: memory.used, usedPercent: percentOf(memory.share) },
      disk: { totalMib: disk.total, usedMib: disk.used, usedPercent: percentOf(disk.share) },
      network: {
        receivedBytes: bound(guest.networkInBytes, COUNTER_MAX),
        sentBytes: bound(guest.networkOutBytes, COUNTER_MAX),
      },
      processCount: bound(guest.processes, PROCESSES_MAX),
    },
    host: {
      cpuSeconds: bound(host.cpuMs, COUNTER_MAX) / 1_000,
      residentMemoryMib: bound(host.residentMib, COUNTER_MAX),
      unsharedMemoryMib: bound(host.unsharedMib, COUNTER_MAX),
      diskUsedMib: bound(host.diskUsedMib, COUNTER_MAX),
      network: {
        receivedBytes: bound(host.networkInBytes, COUNTER_MAX),
        sentBytes: bound(host.networkOutBytes, COUNTER_MAX),
      },
    },
    memoryUsed: memory.share,
    diskUsed: disk.share,
  };
}

/** Looks closer together than this say nothing: the guest counts in hundredths of a second. */
const SHORTEST_SPAN_SECONDS = 1;

/**
 * Mean share of all vCPUs in use between two looks, 0 to 1; null when the later one does not follow
 * the earlier, as after a boot.
 */
export function cpuShareBetween(earlier: CpuLook, later: CpuLook, vcpu: number): number | null {
  const spanSeconds = later.uptimeSeconds - earlier.uptimeSeconds;
  const busySeconds = later.busySeconds - earlier.busySeconds;
  if (spanSeconds < SHORTEST_SPAN_SECONDS || busySeconds < 0) return null;
  return Math.min(1, busySeconds / (spanSeconds * vcpu));
}

/** A share as a percentage with one decimal. */
export function percentOf(share: number): number {
  return Math.round(share * 1_000) / 10;
}

/** The schema has seen to it that the value is a number and not negative. */
function bound(value: number, most: number): number {
  return Math.min(value, most);
}

function boundPart(used: number, total: number, most: number): { used: number; total: number; share: number } {
  const boundTotal = bound(total, most);
  const boundUsed = bound(used, boundTotal);
  return { used: boundUsed, total: boundTotal, share: boundTotal === 0 ? 0 : boundUsed / boundTotal };
}
