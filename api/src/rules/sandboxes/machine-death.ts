// Reasons for the loss of a sandbox's VM, and for a failed request to its host: a code for programs
// and a message for tenants. A host's own text may name its paths, processes and addresses: it
// belongs in logs alone. Pure.

import type { HostErrorCode, VmDeathCode } from '@berth/protocol/host.ts';

export interface Reason {
  code: string;
  message: string;
}

const SENTENCES: { readonly [code in VmDeathCode]: string } = {
  not_created: 'its VM did not start',
  guest_panic: "its guest's kernel panicked",
  guest_shutdown: 'its guest shut down',
  guest_reboot: 'its guest rebooted, which ends the VM',
  out_of_memory: 'its host ran out of memory and killed its VM',
  qemu_crash: 'its virtual machine monitor crashed',
  process_ended: 'the process of its VM exited',
  wake_failed: 'its VM could not be woken',
  not_adopted: 'its guest did not respond after a restart of the host daemon',
};

export function isDeathCode(code: string): code is VmDeathCode {
  return Object.hasOwn(SENTENCES, code);
}

/** The reason of a dead VM as far as its host knows. */
export function deathOf({ deathCode: code = 'process_ended' }: { deathCode?: VmDeathCode | undefined }): Reason {
  return { code, message: `${SENTENCES[code]}. Wake the sandbox if its disk remains; otherwise create another one` };
}

/** Code of a failed request to a host: the host's refusal, or the API's reason. */
export type RequestFailure =
  | HostErrorCode
  | 'host_unreachable'
  | 'host_timeout'
  | 'invalid_answer'
  | 'host_unknown'
  | 'data_key_unusable';

const NO_RESPONSE = 'its host did not respond. Try again later';
const FAILURES: { readonly [code in RequestFailure]?: string } = {
  create_failed: "its VM did not start. Create another sandbox; the operator's log has the reason",
  insufficient_capacity: 'its host has no capacity for its VM. Try again later, or with a smaller size',
  sleep_failed: "its VM could not be captured and keeps running. Try again; the operator's log has the reason",
  wake_failed: "its VM could not be woken. Try again; the operator's log has the reason",
  resize_failed: 'its VM could not be resized while it runs. The next wake applies the size',
  guest_unreachable: 'its guest did not respond. Try again later',
  host_unreachable: NO_RESPONSE,
  host_timeout: NO_RESPONSE,
  data_key_unusable: 'the key of its disk cannot be decrypted. The operator must restore the secret key',
};

/** The reason of a create, sleep, wake or resize that failed. */
export function failureOf(code: RequestFailure): Reason {
  return { code, message: FAILURES[code] ?? "its host refused the request. The operator's log has the reason" };
}

/** Reason of a wake that booted the disk. */
export const NO_SNAPSHOT = 'it had no usable snapshot, so its disk was booted';

/** The host does not respond, so the VM's fate is unknown. */
export const HOST_LOST: Reason = { code: 'host_lost', message: 'its host does not respond' };

/** The host responds but does not know the VM. */
export const VM_LOST: Reason = { code: 'machine_lost', message: 'its host no longer has its VM' };

/** The host responds but has lost the disk of a VM that did not run. */
export const DISK_LOST: Reason = {
  code: 'disk_lost',
  message: 'its host no longer has its snapshot or disk',
};

/** Codes after which the VM may reappear unharmed. */
export const UNREACHABLE_REASONS: ReadonlySet<string> = new Set([HOST_LOST.code, VM_LOST.code]);
