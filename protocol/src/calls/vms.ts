// Calls from the API that the host daemon handles itself: the host, and the lifecycle of its VMs.
// Every verb is idempotent.
import { z } from 'zod';
import { dataKey, vmSpec, vmView } from '../host.ts';
import { egressPolicy } from '../egress.ts';
import { defineCall } from './define.ts';

/** Sixteen long keys, every character escaped. */
const SPEC_BYTES = 2 * 1_024 * 1_024;
const SMALL_BYTES = 4_096;
/** A list of 1,000 VMs is 400 KB. */
const RESPONSE_BYTES = 8 * 1_024 * 1_024;

/** A host: its identity, capacity and reservations. */
export const hostInfo = z.object({
  hostId: z.string(),
  /** Changes at each start of the daemon. */
  startId: z.string(),
  driver: z.enum(['qemu', 'fake']),
  accelerator: z.enum(['kvm', 'tcg', 'none']),
  qemuVersion: z.string().nullable(),
  templateId: z.string().nullable(),
  /** Processor models that its VMs can have under KVM; absent from older daemons. */
  cpuModels: z.array(z.string().max(64)).max(64).optional(),
  /** Total that can be allocated; memory as seen by guests. */
  capacity: z.object({ vcpu: z.int(), memoryMib: z.int(), diskGib: z.int() }),
  reserved: z.object({ vcpu: z.int(), memoryMib: z.int(), diskGib: z.int() }),
  /** Largest VM that the host can create when empty. */
  largest: z.object({ vcpu: z.int(), memoryMib: z.int(), diskGib: z.int() }),
  /** Pool VMs waiting for a create, and their target number. */
  pool: z.object({ ready: z.int(), target: z.int() }),
  /** Deadline of a create, set by an operator; absent from daemons of protocol version 1. */
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

/** Lists the VMs on record at the host, without destroyed ones. */
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

/** `vm_not_found` for a VM that the host has never seen. */
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
 * Returns the VM `running`, made by this call or an earlier one with the same epoch. After
 * `create_failed` the same epoch may retry, unless the VM had been running under it: a fresh disk
 * must not pass for the lost one. A newer epoch ends the older VM and creates it anew. An operator
 * may set another deadline (`BERTH_CREATE_DEADLINE_SECONDS`), reported by {@link hostInfo}.
 */
export const createVm = defineCall({
  name: 'createVm',
  target: 'host',
  method: 'PUT',
  path: '/vms/{vmId}',
  fenced: true,
  body: z.strictObject({ spec: vmSpec, dataKey: dataKey.optional() }),
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
 * Returns the VM `asleep` once memory, devices and disk are durable and its QEMU process has
 * exited. `sleep_failed`: the capture failed; the VM keeps running, under the new epoch.
 * `vm_not_running`: it is dead or was never created. The deadline covers writing the dirty memory.
 */
export const sleepVm = defineCall({
  name: 'sleepVm',
  target: 'host',
  method: 'POST',
  path: '/vms/{vmId}/sleep',
  fenced: true,
  body: z.strictObject({ dataKey: dataKey.optional() }),
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
 * Returns the VM `running`, from its snapshot, or by a boot of its disk without a valid snapshot,
 * as reported by `woke`. The spec is the requested size: more is plugged in, less is unplugged if
 * the guest releases it; the response has the size in force. A running VM (its host was thought
 * lost) is returned unchanged. `wake_failed`: it is still `asleep` or `dead`, with the reason in
 * `message`. `nothing_to_wake`: the host has neither snapshot nor disk. `insufficient_capacity` as
 * for a create. The deadline covers reading the memory, or booting an emulated VM and repairing its
 * disk.
 */
export const wakeVm = defineCall({
  name: 'wakeVm',
  target: 'host',
  method: 'POST',
  path: '/vms/{vmId}/wake',
  fenced: true,
  body: z.strictObject({ spec: vmSpec, dataKey: dataKey.optional() }),
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
 * Grows a `running` VM, verified from inside; `spec` of the response has the new size.
 * `resize_failed`: it keeps running unchanged, with the reason in `message`.
 * `insufficient_capacity` as for a create. `invalid_request`: a resource would shrink.
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
 * Enforces the policy in the VM's network, and records it for later wakes. Keeps a policy with a
 * higher revision. Waits for a verb in progress. `vm_not_running` if the host has no such VM.
 */
export const setEgress = defineCall({
  name: 'setEgress',
  target: 'host',
  method: 'POST',
  path: '/vms/{vmId}/egress',
  fenced: true,
  body: z.strictObject({ egress: egressPolicy }),
  requestBytes: 64 * 1_024,
  form: 'json',
  response: vmView,
  responseBytes: RESPONSE_BYTES,
  deadlineMs: 10_000,
  marginMs: 5_000,
  repeatable: true,
  since: 3,
});

/**
 * Returns the VM `destroyed`, with that epoch, once all its resources are released. Succeeds for
 * VMs that are already destroyed or were never seen: the recorded epoch refuses a late create. Ends
 * every call in flight for the VM (`superseded`).
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
 * Returns the public ssh host key, kind and material, of a VM that was created once, in any status.
 * The key is the one given by the host, never one reported by the guest. `vm_not_found` when none
 * is on record.
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
