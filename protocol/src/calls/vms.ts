// Calls from the API that the host daemon handles itself: the host, and the lifecycle of its VMs.
// Every verb is idempotent.
import { z } from 'zod';
import { dataKey, vmSpec, vmView } from '../host.ts';
import { egressPolicy } from '../egress.ts';
import { defineCall } from './define.ts';

/** Sixteen long keys, every character escaped. */
const SPEC_BYTES = 2 * 1_024 * 1_024;
const SMALL_BYTES = 4_096;

const hostCall = {
  target: 'host',
  form: 'json',
  /** A list of 1,000 VMs is 400 KB. */
  responseBytes: 8 * 1_024 * 1_024,
  repeatable: true,
  since: 1,
} as const;
/** Read from memory and the disk of the host. */
const hostRead = { ...hostCall, method: 'GET', deadlineMs: 0, marginMs: 5_000 } as const;
/** Changes one VM. */
const vmVerb = { ...hostCall, fenced: true, response: vmView } as const;

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
  ...hostRead,
  name: 'info',
  path: '/host',
  response: hostInfo,
});

export const vmList = z.object({ vms: z.array(vmView) });

/** Lists the VMs on record at the host, without destroyed ones. */
export const listVms = defineCall({
  ...hostRead,
  name: 'listVms',
  path: '/vms',
  response: vmList,
});

/** `vm_not_found` for a VM that the host has never seen. */
export const getVm = defineCall({
  ...hostRead,
  name: 'getVm',
  path: '/vms/{vmId}',
  response: vmView,
});

/**
 * Returns the VM `running`, made by this call or an earlier one with the same epoch. After
 * `create_failed` the same epoch may retry, unless the VM had been running under it: a fresh disk
 * must not pass for the lost one. A newer epoch ends the older VM and creates it anew. An operator
 * may set another deadline (`BERTH_CREATE_DEADLINE_SECONDS`), reported by {@link hostInfo}.
 */
export const createVm = defineCall({
  ...vmVerb,
  name: 'createVm',
  method: 'PUT',
  path: '/vms/{vmId}',
  body: z.strictObject({ spec: vmSpec, dataKey: dataKey.optional() }),
  requestBytes: SPEC_BYTES,
  deadlineMs: 60_000,
  marginMs: 30_000,
});

/**
 * Returns the VM `asleep` once memory, devices and disk are durable and its QEMU process has
 * exited. `sleep_failed`: the capture failed; the VM keeps running, under the new epoch.
 * `vm_not_running`: it is dead or was never created. The deadline covers writing the dirty memory.
 */
export const sleepVm = defineCall({
  ...vmVerb,
  name: 'sleepVm',
  method: 'POST',
  path: '/vms/{vmId}/sleep',
  body: z.strictObject({ dataKey: dataKey.optional() }),
  requestBytes: SMALL_BYTES,
  deadlineMs: 280_000,
  marginMs: 35_000,
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
  ...vmVerb,
  name: 'wakeVm',
  method: 'POST',
  path: '/vms/{vmId}/wake',
  body: z.strictObject({ spec: vmSpec, dataKey: dataKey.optional() }),
  requestBytes: SPEC_BYTES,
  deadlineMs: 170_000,
  marginMs: 25_000,
});

/**
 * Grows a `running` VM, verified from inside; `spec` of the response has the new size.
 * `resize_failed`: it keeps running unchanged, with the reason in `message`.
 * `insufficient_capacity` as for a create. `invalid_request`: a resource would shrink.
 */
export const resizeVm = defineCall({
  ...vmVerb,
  name: 'resizeVm',
  method: 'POST',
  path: '/vms/{vmId}/resize',
  body: z.strictObject({
    size: z.strictObject({ vcpu: z.int().min(1).max(64), memoryMib: z.int().min(256), diskGib: z.int().min(1) }),
  }),
  requestBytes: SMALL_BYTES,
  deadlineMs: 60_000,
  marginMs: 30_000,
});

/**
 * Enforces the policy in the VM's network, and records it for later wakes. Keeps a policy with a
 * higher revision. Waits for a verb in progress. `vm_not_running` if the host has no such VM.
 */
export const setEgress = defineCall({
  ...vmVerb,
  name: 'setEgress',
  method: 'POST',
  path: '/vms/{vmId}/egress',
  body: z.strictObject({ egress: egressPolicy }),
  requestBytes: 64 * 1_024,
  deadlineMs: 10_000,
  marginMs: 5_000,
  since: 3,
});

/**
 * Returns the VM `destroyed`, with that epoch, once all its resources are released. Succeeds for
 * VMs that are already destroyed or were never seen: the recorded epoch refuses a late create. Ends
 * every call in flight for the VM (`superseded`).
 */
export const destroyVm = defineCall({
  ...vmVerb,
  name: 'destroyVm',
  method: 'DELETE',
  path: '/vms/{vmId}',
  deadlineMs: 20_000,
  marginMs: 10_000,
});

/** Kept last bytes of a VM's console, and limit of their text in UTF-16 code units. */
export const CONSOLE_BYTES = 65_536;

/** `truncated`: it begins in the middle. `booted`: the VM booted, so the text has its boot. */
export const consoleText = z.object({
  text: z.string().max(CONSOLE_BYTES),
  truncated: z.boolean(),
  booted: z.boolean(),
});
export type ConsoleText = z.infer<typeof consoleText>;

/**
 * `busy`: a verb is in progress. `asleep`: it sleeps, and a console ends with its QEMU process.
 * `not_kept`: it died and left none, or runs and its console is lost. `sealed`: the data key does
 * not open it. `no_response`: QEMU did not respond.
 */
export const consoleMissing = z.enum(['busy', 'asleep', 'not_kept', 'sealed', 'no_response']);
export type ConsoleMissing = z.infer<typeof consoleMissing>;

export const vmConsole = z.union([
  z.object({ console: consoleText }),
  z.object({ console: z.null(), missing: consoleMissing }),
]);
export type VmConsole = z.infer<typeof vmConsole>;

/**
 * Returns the console of a VM since its last start: of a running VM, or as kept at its death. All
 * of it is the guest's to choose, and unfit to be shown as it is. Changes nothing and waits for no
 * verb. The data key opens the console of a dead VM. `vm_not_found` for an unknown VM.
 */
export const readConsole = defineCall({
  ...hostCall,
  name: 'readConsole',
  method: 'POST',
  path: '/vms/{vmId}/console',
  body: z.strictObject({ dataKey: dataKey.optional() }),
  requestBytes: SMALL_BYTES,
  response: vmConsole,
  responseBytes: 6 * CONSOLE_BYTES + 4_096,
  deadlineMs: 3_000,
  marginMs: 2_000,
  since: 11,
});

export const vmSshHostKey = z.object({ publicKey: z.string().regex(/^ssh-ed25519 [A-Za-z0-9+/]{68}$/) });
export type VmSshHostKey = z.infer<typeof vmSshHostKey>;

/**
 * Returns the public ssh host key, kind and material, of a VM that was created once, in any status.
 * The key is the one given by the host, never one reported by the guest. `vm_not_found` when none
 * is on record.
 */
export const sshHostKey = defineCall({
  ...hostRead,
  name: 'sshHostKey',
  path: '/vms/{vmId}/ssh-host-key',
  response: vmSshHostKey,
});
