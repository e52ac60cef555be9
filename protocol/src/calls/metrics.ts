// Calls for metrics of a VM.
import { z } from 'zod';
import { deadlineOf, defineCall } from './define.ts';

/** Counters start at the boot of the VM. */
export const guestMetrics = z.object({
  uptimeSeconds: z.number().min(0),
  vcpu: z.int().min(1),
  /** Busy time of all vCPUs (not idle, not waiting for the disk), in milliseconds. */
  cpuBusyMs: z.number().min(0),
  /** Averages over 1, 5 and 15 minutes. */
  load: z.tuple([z.number().min(0), z.number().min(0), z.number().min(0)]),
  memoryTotalMib: z.number().min(0),
  /** Neither free nor reclaimable. */
  memoryUsedMib: z.number().min(0),
  diskTotalMib: z.number().min(0),
  diskUsedMib: z.number().min(0),
  networkInBytes: z.number().min(0),
  networkOutBytes: z.number().min(0),
  processes: z.int().min(0),
});
export type GuestMetrics = z.infer<typeof guestMetrics>;

/** Metrics that the guest reports about itself. A busy emulated guest is slow. */
export const guestMetricsCall = defineCall({
  name: 'metrics',
  target: 'guest',
  method: 'GET',
  path: '/metrics',
  form: 'json',
  response: guestMetrics,
  responseBytes: 16_384,
  deadlineMs: 5_000,
  marginMs: 5_000,
  repeatable: true,
  since: 1,
});

export const vmMetrics = z.object({
  sampledAtUnixMs: z.int(),
  guest: guestMetrics,
  host: z.object({
    /** CPU time of the VM's process so far. */
    cpuMs: z.number().min(0),
    /** Resident memory of the VM's process, and its part not shared with other VMs. */
    residentMib: z.number().min(0),
    unsharedMib: z.number().min(0),
    /** Space that the VM's disk occupies on the host's disk. */
    diskUsedMib: z.number().min(0),
    /** Traffic of the guest's network interface, as counted by the host. */
    networkInBytes: z.number().min(0),
    networkOutBytes: z.number().min(0),
  }),
});
export type VmMetrics = z.infer<typeof vmMetrics>;

/** Guest and host metrics of a `running` VM at the same moment. */
export const vmMetricsCall = defineCall({
  name: 'vmMetrics',
  target: 'host',
  method: 'GET',
  path: '/vms/{vmId}/metrics',
  form: 'json',
  response: vmMetrics,
  responseBytes: 65_536,
  deadlineMs: deadlineOf(guestMetricsCall, 'guest'),
  marginMs: 5_000,
  repeatable: true,
  since: 1,
});

/** Steps of a host's history, and how long it keeps each. */
export const VM_HISTORY = [
  { stepSeconds: 10, keptSeconds: 3_600 },
  { stepSeconds: 60, keptSeconds: 86_400 },
] as const;
const HISTORY_POINTS = 1_440;

const known = z.number().min(0).nullable();

export const vmHistory = z.object({
  stepSeconds: z.int().min(1),
  /**
   * Ascending. A gap begins with a point of nulls. CPU and network are means since the previous
   * point.
   */
  points: z
    .array(
      z.object({
        atUnixMs: z.int(),
        /** Share of all vCPUs; at most 100. */
        cpuUsedPercent: known,
        residentMib: known,
        unsharedMib: known,
        diskUsedMib: known,
        networkInPerSecond: known,
        networkOutPerSecond: known,
      }),
    )
    .max(HISTORY_POINTS),
});
export type VmHistory = z.infer<typeof vmHistory>;

/**
 * The host's figures of a VM in the past, in the smallest step kept for the window. Also for a VM
 * that does not run. Empty after a start of the host daemon, which keeps them in memory.
 */
export const vmHistoryCall = defineCall({
  name: 'vmHistory',
  target: 'host',
  method: 'GET',
  path: '/vms/{vmId}/metrics/history',
  query: z.strictObject({ windowSeconds: z.coerce.number<string | number>().pipe(z.int().min(1).max(86_400)) }),
  form: 'json',
  response: vmHistory,
  responseBytes: 1_048_576,
  deadlineMs: 5_000,
  marginMs: 5_000,
  repeatable: true,
  since: 6,
});
