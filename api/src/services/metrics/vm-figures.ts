// Sanitises a host's metrics of a VM for display and storage. The guest is hostile: each number is
// bounded by what its VM can have, so that none is absurd, breaks a sum or exceeds 100 %. Lies
// within the bounds harm only the guest itself.
import type { Allocation } from '@berth/contract/sandboxes/machine-sizes.ts';
import type { LiveMetrics } from '@berth/contract/metrics/metrics.ts';
import type { VmMetrics } from '@berth/protocol/calls/metrics.ts';

const MIB_PER_GIB = 1_024;
/** Ten years. A guest counts from the boot of its template, so the sandbox's age is no bound. */
const UPTIME_MAX_SECONDS = 10 * 366 * 86_400;
/** Linux's PID_MAX_LIMIT bounds the number of processes, and so the load. */
const PROCESSES_MAX = 4_194_304;
const COUNTER_MAX = Number.MAX_SAFE_INTEGER;

/** Bounded figures of one poll. Shares are 0 to 1. */
export interface VmFigures {
  guest: LiveMetrics['guest'];
  host: LiveMetrics['host'];
  memoryUsed: number;
  diskUsed: number;
}

/** Reading of a VM's CPU counters. */
interface CpuSample {
  uptimeSeconds: number;
  busySeconds: number;
}

/** Bounds the figures by `most`. CPU use needs two readings: see {@link cpuShareBetween}. */
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
      // CPU time cannot exceed uptime times vCPUs.
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

/** Readings closer together are meaningless: the guest counts in hundredths of a second. */
const SHORTEST_SPAN_SECONDS = 1;

/** Mean vCPU use between two readings, 0 to 1; null if they are not continuous, as after a boot. */
export function cpuShareBetween(earlier: CpuSample, later: CpuSample, vcpu: number): number | null {
  const spanSeconds = later.uptimeSeconds - earlier.uptimeSeconds;
  const busySeconds = later.busySeconds - earlier.busySeconds;
  if (spanSeconds < SHORTEST_SPAN_SECONDS || busySeconds < 0) return null;
  return Math.min(1, busySeconds / (spanSeconds * vcpu));
}

/** Converts a share to a percentage with one decimal. */
export function percentOf(share: number): number {
  return Math.round(share * 1_000) / 10;
}

/** The schema guarantees a non-negative number. */
function bound(value: number, most: number): number {
  return Math.min(value, most);
}

function boundPart(used: number, total: number, most: number): { used: number; total: number; share: number } {
  const boundTotal = bound(total, most);
  const boundUsed = bound(used, boundTotal);
  return { used: boundUsed, total: boundTotal, share: boundTotal === 0 ? 0 : boundUsed / boundTotal };
}
