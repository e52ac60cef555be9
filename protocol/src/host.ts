// The host's view of a VM, and the errors of a host daemon. The wire is HTTP/1.1 with JSON bodies,
// over a unix socket or TCP, with a bearer token; calls/ defines its calls.
import { z } from 'zod';
import { AGENT_ERRORS } from './agent-errors.ts';
import { egressDenied, egressPolicy } from './egress.ts';
import { errnoName, FILE_ERRORS } from './files.ts';
import { COMMAND_ERRORS, PROCESS_ERRORS } from './guest-limits.ts';

/** A VM's id on its host is the sandbox's id. */
export const vmId = z.string().regex(/^sbx_[a-z2-7]{20,40}$/);

export const vmSpec = z.strictObject({
  vcpu: z.int().min(1).max(64),
  memoryMib: z.int().min(256),
  diskGib: z.int().min(1),
  hostname: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/),
  sshAuthorizedKeys: z.array(z.string().max(16_384)).max(16),
  /** Absent: open. */
  egress: egressPolicy.optional(),
});
/** Size, name and egress policy of a VM. Memory in MiB, disk in GiB. */
export type VmSpec = z.infer<typeof vmSpec>;

/**
 * Data key of a VM: 32 random bytes. The control plane stores it sealed until the sandbox is
 * deleted; a host holds it in memory while the VM runs.
 */
export const dataKey = z.string().regex(/^[A-Za-z0-9_-]{43}$/);

/**
 * Disk space of a VM beyond its disk and its memory, in GiB: tables of the disk image, device state
 * and index of the snapshot.
 */
export const STORAGE_OVERHEAD_GIB = 1;

/**
 * Most disk space that a VM of a size can take on its host, in GiB: its disk, and the snapshot of
 * its whole memory. Reserved from create to destroy, so that a sleep always has room.
 */
export function storageGib({ memoryMib, diskGib }: Pick<VmSpec, 'memoryMib' | 'diskGib'>): number {
  return diskGib + Math.ceil(memoryMib / 1_024) + STORAGE_OVERHEAD_GIB;
}

/**
 * Status of a VM at its host.
 *
 * ```
 * creating -> running -> sleeping -> asleep -> waking -> running
 *     |          |           |                   |
 *     +----------+-----------+-------------------+--> dead --wake--> waking     any --destroy--> destroyed
 * ```
 *
 * `creating`, `sleeping`, `waking`: a call is in progress. `running`: the guest responded with its
 * own identity. `asleep`: memory and disk are on the host's disk, and no process runs. `dead`: its
 * process is gone or never started, for the given `reason`. `destroyed`: gone with its disk and
 * snapshot; only the epoch is recorded.
 */
export const vmStatus = z.enum(['creating', 'running', 'sleeping', 'asleep', 'waking', 'dead', 'destroyed']);
export type VmStatus = z.infer<typeof vmStatus>;

/**
 * Machine-readable cause of a VM's death. `not_created`: it never started. `process_ended`: QEMU
 * exited without a known cause.
 */
export const vmDeathCode = z.enum([
  'not_created',
  'guest_panic',
  'guest_shutdown',
  'guest_reboot',
  'out_of_memory',
  'qemu_crash',
  'process_ended',
  'wake_failed',
  'not_adopted',
]);
export type VmDeathCode = z.infer<typeof vmDeathCode>;

/**
 * Source of the last wake: the snapshot, with its processes, or a boot of the disk for the given
 * `reason`.
 */
export const vmWoke = z.object({ from: z.enum(['snapshot', 'disk']), reason: z.string().nullable() });
export type VmWoke = z.infer<typeof vmWoke>;

/** Version of a VM's access to models; calls/model-access.ts. */
export const modelVersion = z.string().max(100);

export const vmView = z.object({
  id: vmId,
  epoch: z.int().min(1),
  status: vmStatus,
  /** Present with `dead`; human-readable. */
  reason: z.string().optional(),
  /** Present with `dead`. */
  deathCode: vmDeathCode.optional(),
  /**
   * Source of the next wake. Present with `asleep` (`disk` when the snapshot is unusable) and
   * `dead`.
   */
  keeps: z.enum(['snapshot', 'disk', 'nothing']).optional(),
  /**
   * Present with `dead`, if known: last time the process was seen running, in milliseconds since
   * 1970.
   */
  lastAliveUnixMs: z.int().optional(),
  /** Size and name in force; for a running VM, as verified in the guest. Without the policy. */
  spec: vmSpec.optional(),
  /**
   * Revision of the egress policy in force, or of the next wake for a VM that does not run. Absent
   * if the VM never had one. Lower than requested after a failed change, and 0 if a new daemon
   * could not enforce the policy on record.
   */
  egressRevision: z.int().min(0).optional(),
  /** Present with `running`, if the host refused any. */
  egressDenied: egressDenied.optional(),
  /**
   * Version of the access to models in force; null: none yet. Present with `running`, if agents of
   * the VM use the model gateway.
   */
  modelVersion: modelVersion.nullable().optional(),
  /** Present after the first wake. */
  woke: vmWoke.optional(),
  /** CPU time of the VM's process so far, in milliseconds. Present with `running`. */
  cpuMs: z.int().min(0).optional(),
});
export type VmView = z.infer<typeof vmView>;

/**
 * Error codes with their HTTP status.
 * - `stale_epoch`: a newer epoch was seen. `epoch_conflict`: the same epoch with another spec.
 * - `insufficient_capacity`: `resource` names the exhausted resource.
 * - `vm_not_found`, `vm_not_running`: for data-plane calls.
 * - `create_failed`: the VM could not be started, with the reason in `message`; it is fully
 * removed.
 * - `guest_unreachable`: the guest did not respond, or violated its protocol.
 * - `superseded`: a newer call took precedence.
 * - `exec_options_unsupported`, `processes_unsupported`, `file_call_unsupported`,
 * `variables_unsupported`: the guest daemon is of an earlier release.
 * - `too_many_streams`: limit of open streams of the VM or its host.
 * Others: see their calls, `COMMAND_ERRORS`, `PROCESS_ERRORS`, `FILE_ERRORS` and `AGENT_ERRORS`.
 */
export const HOST_ERRORS = {
  ...AGENT_ERRORS,
  ...FILE_ERRORS,
  ...COMMAND_ERRORS,
  ...PROCESS_ERRORS,
  invalid_request: 400,
  unauthorized: 401,
  port_forbidden: 403,
  vm_not_found: 404,
  route_not_found: 404,
  stale_epoch: 409,
  epoch_conflict: 409,
  vm_not_running: 409,
  superseded: 409,
  exec_options_unsupported: 409,
  processes_unsupported: 409,
  file_call_unsupported: 409,
  variables_unsupported: 409,
  nothing_to_wake: 409,
  too_many_streams: 429,
  create_failed: 500,
  sleep_failed: 500,
  wake_failed: 500,
  resize_failed: 500,
  internal: 500,
  guest_unreachable: 502,
  port_refused: 502,
  insufficient_capacity: 507,
} as const;
export type HostErrorCode = keyof typeof HOST_ERRORS;

export const hostError = z.object({
  error: z.object({
    code: z.enum(Object.keys(HOST_ERRORS) as [HostErrorCode, ...HostErrorCode[]]),
    message: z.string(),
    /** With `insufficient_capacity`. Amounts in the resource's unit: vCPUs, MiB or GiB. */
    shortage: z
      .object({ resource: z.enum(['vcpu', 'memoryMib', 'diskGib']), requested: z.number(), available: z.number() })
      .optional(),
    /** With `file_system_error`. */
    errno: errnoName.optional(),
  }),
});
export type HostErrorBody = z.infer<typeof hostError>;

type Resource = NonNullable<HostErrorBody['error']['shortage']>['resource'];

/** Settings of the operator that raise the limit of a resource; docs/operations.md has them. */
export const CAPACITY_SETTINGS: { readonly [resource in Resource]: string } = {
  vcpu: '--cpu-overcommit (BERTH_CPU_OVERCOMMIT)',
  memoryMib: 'BERTH_MEMORY_OVERCOMMIT or a lower --memory-reserve-mib, as far as the host has free memory',
  diskGib: 'BERTH_DISK_OVERCOMMIT or a lower BERTH_DISK_RESERVE_GIB, as far as the host has free disk space',
};

/** Sentence for a shortage message. */
export function capacityRemedy(resource: Resource): string {
  return `The operator can raise the limit with ${CAPACITY_SETTINGS[resource]}.`;
}
