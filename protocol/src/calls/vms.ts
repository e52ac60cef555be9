// Calls of the API that the host daemon serves itself: the host, and the life of its VMs. Every verb
// is idempotent.
import { z } from 'zod';
import { vmSpec, vmView } from '../host.ts';
import { defineCall } from './define.ts';

/** Sixteen long keys, with every character escaped. */
const SPEC_BYTES = 2 * 1_024 * 1_024;
const SMALL_BYTES = 4_096;
/** A list of 1,000 VMs is 400 KB. */
const RESPONSE_BYTES = 8 * 1_024 * 1_024;

/** A host: its identity, what it can hold and what is reserved. */
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
  /** Largest machine it can make, whatever is free. */
  largest: z.object({ vcpu: z.int(), memoryMib: z.int(), diskGib: z.int() }),
  /** Restored machines that wait for a create: how many there are, and how many it aims at. */
  pool: z.object({ ready: z.int(), target: z.int() }),
  /** Deadline of a create, which an operator sets; absent from a daemon of protocol version 1. */
  createDeadlineMs: z.int().optional(),
});
export type HostInfo = z.infer<typeof hostInfo>;

export const info = defineCall({
  name: 'info',
  target: 'host',
  method: 'GET',
  path: '/host',
  form: 'json',
  response: hostInfo,
  responseBytes: RESPONSE_BYTES,
  deadlineMs: 0,
  marginMs: 5_000,
  repeatable: true,
  since: 1,
});

export const vmList = z.object({ vms: z.array(vmView) });

/** Lists the VMs that the host has on record, without destroyed ones. */
export const listVms = defineCall({
  name: 'listVms',
  target: 'host',
  method: 'GET',
  path: '/vms',
  form: 'json',
  response: vmList,
  responseBytes: RESPONSE_BYTES,
  deadlineMs: 0,
  marginMs: 5_000,
  repeatable: true,
  since: 1,
});

/** `vm_not_found` for a VM that the host never saw. */
export const getVm = defineCall({
  name: 'getVm',
  target: 'host',
  method: 'GET',
  path: '/vms/{vmId}',
  form: 'json',
  response: vmView,
  responseBytes: RESPONSE_BYTES,
  deadlineMs: 0,
  marginMs: 5_000,
  repeatable: true,
  since: 1,
});

/**
 * Returns the VM `running`, whether this call or an earlier one with the same epoch made it. After
 * a `create_failed` the same epoch may try again, unless the VM had been running under it: a fresh
 * disk must not pass for the one that was lost. A newer epoch ends the VM of the older one and
 * makes it anew. An operator may set another deadline, which {@link hostInfo} reports.
 */
export const createVm = defineCall({
  name: 'createVm',
  target: 'host',
  method: 'PUT',
  path: '/vms/{vmId}',
  fenced: true,
  body: z.strictObject({ spec: vmSpec }),
  requestBytes: SPEC_BYTES,
  form: 'json',
  response: vmView,
  responseBytes: RESPONSE_BYTES,
  deadlineMs: 60_000,
  marginMs: 30_000,
  repeatable: true,
  since: 1,
});

/**
 * Returns the VM `asleep` once memory, devices and disk are durable and its QEMU process is gone.
 * `sleep_failed`: it could not be captured and runs on, under the new epoch. `vm_not_running` when
 * it is dead or was never made. The deadline covers writing the dirty memory.
 */
export const sleepVm = defineCall({
  name: 'sleepVm',
  target: 'host',
  method: 'POST',
  path: '/vms/{vmId}/sleep',
  fenced: true,
  body: z.strictObject({}),
  requestBytes: SMALL_BYTES,
  form: 'json',
  response: vmView,
  responseBytes: RESPONSE_BYTES,
  deadlineMs: 280_000,
  marginMs: 35_000,
  repeatable: true,
  since: 1,
});

/**
 * Returns the VM `running`, from its snapshot, or by a boot of its disk when there is no snapshot
 * or it does not verify; `woke` says which. The spec is the requested size: more than before is
 * plugged in, less is unplugged if the guest releases it; `spec` of the response is the size in
 * force. A VM that runs already (its host was thought lost) is returned as it is. `wake_failed`: it
 * is `asleep` or `dead` as before, `message` says why. `nothing_to_wake`: the host has neither
 * snapshot nor disk. `insufficient_capacity` as for a create. The deadline covers reading the
 * memory, or booting an emulated VM and repairing its disk.
 */
export const wakeVm = defineCall({
  name: 'wakeVm',
  target: 'host',
  method: 'POST',
  path: '/vms/{vmId}/wake',
  fenced: true,
  body: z.strictObject({ spec: vmSpec }),
  requestBytes: SPEC_BYTES,
  form: 'json',
  response: vmView,
  responseBytes: RESPONSE_BYTES,
  deadlineMs: 170_000,
  marginMs: 25_000,
  repeatable: true,
  since: 1,
});

/**
 * Grows a VM that is `running`, verified from inside; `spec` of the response has the new size.
 * `resize_failed`: it runs on as before, `message` says why. `insufficient_capacity` as for a
 * create. `invalid_request`: less than it has of anything.
 */
export const resizeVm = defineCall({
  name: 'resizeVm',
  target: 'host',
  method: 'POST',
  path: '/vms/{vmId}/resize',
  fenced: true,
  body: z.strictObject({
    size: z.strictObject({ vcpu: z.int().min(1).max(64), memoryMib: z.int().min(256), diskGib: z.int().min(1) }),
  }),
  requestBytes: SMALL_BYTES,
  form: 'json',
  response: vmView,
  responseBytes: RESPONSE_BYTES,
  deadlineMs: 60_000,
  marginMs: 30_000,
  repeatable: true,
  since: 1,
});

/**
 * Returns the VM `destroyed` and that epoch, once nothing of it is left; again when it was gone
 * already, and for a VM the host never saw: the epoch is remembered and refuses a create that
 * arrives late. Ends whatever is under way for the VM (`superseded`).
 */
export const destroyVm = defineCall({
  name: 'destroyVm',
  target: 'host',
  method: 'DELETE',
  path: '/vms/{vmId}',
  fenced: true,
  form: 'json',
  response: vmView,
  responseBytes: RESPONSE_BYTES,
  deadlineMs: 20_000,
  marginMs: 10_000,
  repeatable: true,
  since: 1,
});

export const vmSshHostKey = z.object({ publicKey: z.string().regex(/^ssh-ed25519 [A-Za-z0-9+/]{68}$/) });
export type VmSshHostKey = z.infer<typeof vmSshHostKey>;

/**
 * Returns the public key, kind and material, of the ssh server of a VM that was made once, in any
 * status. It is the key that the host gave the VM, never what the guest reports. `vm_not_found`
 * when none is on record.
 */
export const sshHostKey = defineCall({
  name: 'sshHostKey',
  target: 'host',
  method: 'GET',
  path: '/vms/{vmId}/ssh-host-key',
  form: 'json',
  response: vmSshHostKey,
  responseBytes: RESPONSE_BYTES,
  deadlineMs: 0,
  marginMs: 5_000,
  repeatable: true,
  since: 1,
});
