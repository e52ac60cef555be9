// Calls for the figures of a VM.
import { z } from 'zod';
import { deadlineOf, defineCall } from './define.ts';

/** Counters count from the boot of the VM. */
export const guestMetrics = z.object({
  uptimeSeconds: z.number().min(0),
  vcpu: z.int().min(1),
  /**
   * Time all vCPUs together spent at work (not idle, not waiting for the disk), in milliseconds.
   */
  cpuBusyMs: z.number().min(0),
  /** Over 1, 5 and 15 minutes. */
  load: z.tuple([z.number().min(0), z.number().min(0), z.number().min(0)]),
  memoryTotalMib: z.number().min(0),
  /** In use: neither free nor given back when somebody asks. */
  memoryUsedMib: z.number().min(0),
  diskTotalMib: z.number().min(0),
  diskUsedMib: z.number().min(0),
  networkInBytes: z.number().min(0),
  networkOutBytes: z.number().min(0),
  processes: z.int().min(0),
});
export type GuestMetrics = z.infer<typeof guestMetrics>;

/** Figures that the guest reports about itself. An emulated guest that is busy takes its time. */
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
    /** Processor time of the VM's process so far. */
    cpuMs: z.number().min(0),
    /**
     * Memory of the VM's process that is in the machine's RAM, and the part of it that no other VM
     * shares.
     */
    residentMib: z.number().min(0),
    unsharedMib: z.number().min(0),
    /** Space that the VM's disk takes on the host's disk. */
    diskUsedMib: z.number().min(0),
    /** Bytes that went into and out of the guest's network interface, as its host counted them. */
    networkInBytes: z.number().min(0),
    networkOutBytes: z.number().min(0),
  }),
});
export type VmMetrics = z.infer<typeof vmMetrics>;

/** Figures of guest and host of a VM that is `running`, at one moment. */
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
