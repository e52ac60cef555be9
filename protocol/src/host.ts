// The wire between the control plane and a host daemon: HTTP/1.1 with JSON bodies, over a unix
// socket or TCP, with a bearer token. Every verb is idempotent and fenced by the sandbox's epoch: a
// host refuses an epoch older than the newest it has seen for that VM.
import { z } from 'zod';
import { errnoName, FILE_ERRORS } from './files.ts';
import { CLONE_SECRET_LENGTH, EXEC_COMMAND_LENGTH } from './guest-limits.ts';
import { guestClone, guestMetrics, HIGHEST_PORT, PORT_TEXT, TERMINAL_SIZE, type TerminalAsked } from './guest.ts';

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
 *
 * ```
 * creating -> running -> sleeping -> asleep -> waking -> running
 *     |          |           |                   |
 *     +----------+-----------+-------------------+--> dead --wake--> waking     any --destroy--> destroyed
 * ```
 *
 * `creating`, `sleeping`, `waking`: owned by a call that is under way. `running`: the guest
 * answered with its own identity. `asleep`: its memory and disk are on the host's disk, nothing of
 * it runs. `dead`: its process is gone or it never came up, `reason` says why; nothing of it runs.
 * `destroyed`: gone with its disk and snapshot; only the epoch is remembered.
 */
export const vmStatus = z.enum(['creating', 'running', 'sleeping', 'asleep', 'waking', 'dead', 'destroyed']);
export type VmStatus = z.infer<typeof vmStatus>;

/**
 * Why a VM is dead, for programs. `not_created`: it never came up. `process_ended`: QEMU ended in a
 * way that says nothing of the cause.
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
 * How a VM came back the last time: from its snapshot, processes and all, or by a boot of its disk;
 * then `reason` says why.
 */
export const vmWoke = z.object({ from: z.enum(['snapshot', 'disk']), reason: z.string().nullable() });
export type VmWoke = z.infer<typeof vmWoke>;

export const vmView = z.object({
  id: vmId,
  epoch: z.int().min(1),
  status: vmStatus,
  /** Present with `dead`: for people. */
  reason: z.string().optional(),
  /** Present with `dead`. */
  deathCode: vmDeathCode.optional(),
  /**
   * What a wake would start from. Present with `asleep` (`snapshot`, or `disk` when the snapshot is
   * known to be of no use) and `dead`.
   */
  keeps: z.enum(['snapshot', 'disk', 'nothing']).optional(),
  /**
   * Present with `dead`, where it is known: when the process was last seen to run, in milliseconds
   * since 1970.
   */
  lastAliveUnixMs: z.int().optional(),
  /** Size and name in force: what the guest was verified to have, while it runs. */
  spec: vmSpec.optional(),
  /** Present once it was woken. */
  woke: vmWoke.optional(),
  /** Processor time that its process has used so far, in milliseconds. Present with `running`. */
  cpuMs: z.int().min(0).optional(),
});
export type VmView = z.infer<typeof vmView>;

/**
 * `PUT /vms/{id}`: answers 200 with the VM `running`, whether this call or an earlier one with the
 * same epoch made it. After a `create_failed` the same epoch may try again, unless the VM had been
 * running under it: a fresh disk must not pass for the one that was lost. A newer epoch ends the VM
 * of the older one and makes it anew.
 */
export const vmCreate = z.strictObject({ epoch: z.int().min(1), spec: vmSpec });
export type VmCreate = z.infer<typeof vmCreate>;

/**
 * `POST /vms/{id}/sleep`: answers 200 with the VM `asleep` under that epoch once memory, devices
 * and disk are durable and its machine is released. Again 200 when it is asleep already.
 * `sleep_failed`: it could not be captured and runs on, under the new epoch. `vm_not_running` when
 * it is dead or was never made.
 */
export const vmSleep = z.strictObject({ epoch: z.int().min(1) });
export type VmSleep = z.infer<typeof vmSleep>;

/**
 * `POST /vms/{id}/wake`: answers 200 with the VM `running` under that epoch, from its snapshot, or
 * by a boot of its disk when there is no snapshot or it does not verify; `woke` says which. The
 * spec is what it shall have: what is more than before is plugged in, what is less is taken away if
 * the guest lets go of it; `spec` of the answer is what it has. A VM that runs already (its host
 * was thought lost) answers as it is. `wake_failed`: it is `asleep` or `dead` as before, `message`
 * says why. `nothing_to_wake`: neither snapshot nor disk are here. `insufficient_capacity` as for a
 * create.
 */
export const vmWake = z.strictObject({ epoch: z.int().min(1), spec: vmSpec });
export type VmWake = z.infer<typeof vmWake>;

/**
 * `POST /vms/{id}/resize`: grows a VM that is `running`, verified from inside. Answers 200 with the
 * VM as it is then; `spec` has the new size. `resize_failed`: it runs on as it was, `message` says
 * what did not work. `insufficient_capacity` as for a create. Less than it has of anything:
 * `invalid_request`.
 */
export const vmResize = z.strictObject({
  epoch: z.int().min(1),
  size: z.strictObject({ vcpu: z.int().min(1).max(64), memoryMib: z.int().min(256), diskGib: z.int().min(1) }),
});
export type VmResize = z.infer<typeof vmResize>;

/**
 * `DELETE /vms/{id}?epoch=N`: answers 200 with the VM `destroyed` and that epoch, once nothing of
 * it is left; again 200 when it was gone already, and for a VM the host never saw: the epoch is
 * remembered and refuses a create that arrives late. Ends whatever is under way for it
 * (`superseded`).
 */
export const vmDestroyQuery = z.strictObject({ epoch: z.coerce.number<string>().int().min(1) });

/**
 * `GET /vms/{id}/metrics`: what the guest says of itself and what its host sees of it, at one
 * moment. Only while `running`.
 */
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
  /** Largest machine it can make, whatever is free. */
  largest: z.object({ vcpu: z.int(), memoryMib: z.int(), diskGib: z.int() }),
  /** Restored machines that wait for a create: how many there are, and how many it aims at. */
  pool: z.object({ ready: z.int(), target: z.int() }),
});
export type HostInfo = z.infer<typeof hostInfo>;

/** `GET /vms`: every VM the host has on record, `destroyed` ones left out. */
export const vmList = z.object({ vms: z.array(vmView) });

/**
 * `GET /vms/{id}/ssh-host-key`: the public key of the ssh server of a VM that was made once,
 * whatever it does now: kind and material. It is what the host gave the VM, never what the guest
 * says. `vm_not_found` where there is none on record.
 */
export const vmSshHostKey = z.object({ publicKey: z.string().regex(/^ssh-ed25519 [A-Za-z0-9+/]{68}$/) });
export type VmSshHostKey = z.infer<typeof vmSshHostKey>;

const cloneCredentials = z.strictObject({
  username: z.string().min(1).max(CLONE_SECRET_LENGTH),
  token: z.string().min(1).max(CLONE_SECRET_LENGTH),
});

/**
 * `POST /vms/{id}/clone`: the body of the guest's `POST /clone` with the credentials in plain and
 * the sandbox's epoch, and the guest's streamed answer. An epoch older than the newest seen is
 * refused. A sleep ends it, and so does a destroy.
 */
export const vmClone = guestClone.extend({ credentials: cloneCredentials.nullable(), epoch: z.int().min(1) });
export type VmClone = z.infer<typeof vmClone>;

/**
 * `POST /vms/{id}/exec`: the body and the streamed answer are those of the guest (`guest.ts`). File
 * calls: `files.ts`.
 */

/**
 * `GET /vms/{id}/ports/{port}` with `Connection: Upgrade` and `Upgrade: tcp`: after a 101 a raw
 * stream of bytes to that TCP port of the guest, while it is `running`; a refusal is a JSON error
 * as everywhere. The end of one direction is passed on and leaves the other open. The host dials
 * the guest's address in its own network slot and no other; when that is refused it asks the guest
 * daemon for the guest's loopback. A sleep, a destroy or the end of the VM closes the stream at
 * once; so do the host's bounds on a stream's silence and its age. `port_refused`: nothing listens.
 * `port_forbidden`: the guest daemon's own.
 */
export const vmPort = z
  .string()
  .regex(PORT_TEXT, { error: `must be a port: a whole number from 1 to ${HIGHEST_PORT}` })
  .transform(Number)
  .pipe(z.int().max(HIGHEST_PORT));

const terminalCommand = z.string().min(1).max(EXEC_COMMAND_LENGTH);
const terminalSide = z.coerce.number<string>().int().min(TERMINAL_SIZE.min).max(TERMINAL_SIZE.max);

/**
 * `GET /vms/{id}/terminal?...` with `Upgrade: berth-terminal`: a terminal, or a command, of the
 * guest (guest.ts, `GET /terminal`, with the same query), under the rules of a stream to a port.
 */
export const vmTerminalQuery = z
  .union([
    z.strictObject({ cols: terminalSide, rows: terminalSide, command: terminalCommand.optional() }),
    z.strictObject({ tty: z.literal('false'), command: terminalCommand }),
  ])
  .transform((query): TerminalAsked => {
    return 'tty' in query
      ? { tty: false, command: query.command }
      : { tty: true, ...query, command: query.command ?? null };
  });

/**
 * Codes of refused calls, with their HTTP status.
 * `stale_epoch`: a newer epoch was seen. `epoch_conflict`: the same epoch with another spec.
 * `insufficient_capacity`: `resource` names what is short. `vm_not_found`, `vm_not_running`: for
 * data-plane calls. `create_failed`: the VM could not be brought up, `message` says why; nothing of
 * it is left. `guest_unreachable`: the guest did not answer, or answered something that is not its
 * protocol. `superseded`: a newer call overtook this one. `sleep_failed`, `wake_failed`,
 * `resize_failed`, `nothing_to_wake`: see the verbs. `port_refused`, `port_forbidden`: see {@link
 * vmPort}. `too_many_streams`: the VM, or its host, has as many streams open as it may. Those of
 * file calls: see `FILE_ERRORS`.
 */
export const HOST_ERRORS = {
  ...FILE_ERRORS,
  invalid_request: 400,
  unauthorized: 401,
  port_forbidden: 403,
  vm_not_found: 404,
  route_not_found: 404,
  stale_epoch: 409,
  epoch_conflict: 409,
  vm_not_running: 409,
  superseded: 409,
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
