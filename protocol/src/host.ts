// The wire between the control plane and a host daemon: HTTP/1.1 with JSON bodies, over a unix socket or TCP, with a bearer token.
// Every verb is idempotent and fenced by the sandbox's epoch: a host refuses an epoch older than the newest it has seen for that VM.
import { z } from 'zod';

/** A VM's id on its host is the sandbox's id. */
export const vmId = z.string().regex(/^sbx_[a-z2-7]{20,40}$/);

export const vmSpec = z.strictObject({
  vcpu: z.int().min(1).max(64),
  memoryMib: z.int().min(256),
  diskGib: z.int().min(1),
  hostname: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/),
  sshAuthorizedKeys: z.array(z.string().max(16_384)).max(16),
});
/** Size and name of a VM. Memory in MiB, disk in GiB. */
export type VmSpec = z.infer<typeof vmSpec>;

/**
 * Status of a VM as its host knows it.
 * `creating`: being restored, owned by a call that is under way. `running`: the guest answered with its own identity.
 * `dead`: its process is gone or it never came up, `reason` says why; nothing of it runs. `destroyed`: gone with its disk; only the epoch is remembered.
 */
export const vmStatus = z.enum(['creating', 'running', 'dead', 'destroyed']);
export type VmStatus = z.infer<typeof vmStatus>;

export const vmView = z.object({
  id: vmId,
  epoch: z.int().min(1),
  status: vmStatus,
  /** Present with `dead`. */
  reason: z.string().optional(),
  spec: vmSpec.optional(),
});
export type VmView = z.infer<typeof vmView>;

/**
 * `PUT /vms/{id}`: answers 200 with the VM `running`, whether this call or an earlier one with the same epoch made it. After a `create_failed` the same
 * epoch may try again, unless the VM had been running under it: a fresh disk must not pass for the one that was lost. A newer epoch ends the VM of
 * the older one and makes it anew.
 */
export const vmCreate = z.strictObject({ epoch: z.int().min(1), spec: vmSpec });
export type VmCreate = z.infer<typeof vmCreate>;

/**
 * `DELETE /vms/{id}?epoch=N`: answers 200 with the VM `destroyed` and that epoch, once nothing of it is left; again 200 when it was gone already, and for
 * a VM the host never saw: the epoch is remembered and refuses a create that arrives late. Ends a create that is under way (`superseded`).
 */
export const vmDestroyQuery = z.strictObject({ epoch: z.coerce.number<string>().int().min(1) });

/** `GET /host` */
export const hostInfo = z.object({
  hostId: z.string(),
  /** New at each start of the daemon. */
  startId: z.string(),
  driver: z.enum(['qemu', 'fake']),
  accelerator: z.enum(['kvm', 'tcg', 'none']),
  qemuVersion: z.string().nullable(),
  templateId: z.string().nullable(),
  /** What may be handed out in all; memory as the guests see it. */
  capacity: z.object({ vcpu: z.int(), memoryMib: z.int(), diskGib: z.int() }),
  reserved: z.object({ vcpu: z.int(), memoryMib: z.int(), diskGib: z.int() }),
});
export type HostInfo = z.infer<typeof hostInfo>;

/** `GET /vms`: every VM the host has on record, `destroyed` ones left out. */
export const vmList = z.object({ vms: z.array(vmView) });

/** `POST /vms/{id}/exec`: the body and the streamed answer are those of the guest (`guest.ts`). */

/**
 * Codes of refused calls, with their HTTP status.
 * `stale_epoch`: a newer epoch was seen. `epoch_conflict`: the same epoch with another spec. `insufficient_capacity`: `resource` names what is
 * short. `vm_not_found`, `vm_not_running`: for data-plane calls. `create_failed`: the VM could not be brought up, `message` says why; nothing of it is left.
 * `guest_unreachable`: the guest did not answer, or answered something that is not its protocol. `superseded`: a destroy overtook this call.
 */
export const HOST_ERRORS = {
  invalid_request: 400,
  unauthorized: 401,
  vm_not_found: 404,
  route_not_found: 404,
  stale_epoch: 409,
  epoch_conflict: 409,
  vm_not_running: 409,
  superseded: 409,
  create_failed: 500,
  internal: 500,
  guest_unreachable: 502,
  insufficient_capacity: 507,
} as const;
export type HostErrorCode = keyof typeof HOST_ERRORS;

export const hostError = z.object({
  error: z.object({
    code: z.enum(Object.keys(HOST_ERRORS) as [HostErrorCode, ...HostErrorCode[]]),
    message: z.string(),
    /** With `insufficient_capacity`. Amounts in the resource's unit: vCPUs, MiB or GiB. */
    shortage: z.object({ resource: z.enum(['vcpu', 'memoryMib', 'diskGib']), requested: z.number(), available: z.number() }).optional(),
  }),
});
export type HostErrorBody = z.infer<typeof hostError>;
