// Reasons for the loss of a sandbox's VM: a code for programs and a message for people. Pure.

import type { VmDeathCode } from '@berth/protocol/host.ts';

export interface Reason {
  code: string;
  message: string;
}

const SENTENCES: { readonly [code in VmDeathCode]: string } = {
  not_created: 'its machine never came up',
  guest_panic: 'its kernel panicked',
  guest_shutdown: 'it was shut down from inside',
  guest_reboot: 'it was rebooted from inside, which ends it',
  out_of_memory: 'its host ran out of memory and ended it',
  qemu_crash: 'its virtual machine monitor crashed',
  process_ended: 'the process of its machine ended',
  wake_failed: 'it could not be woken',
  not_adopted: 'it did not answer after its host daemon was started again',
};

export function isDeathCode(code: string): code is VmDeathCode {
  return Object.hasOwn(SENTENCES, code);
}

/** The reason of a dead VM as far as its host knows; `reason` is the host's text. */
export function deathOf(machine: { deathCode?: VmDeathCode | undefined; reason?: string | undefined }): Reason {
  const code = machine.deathCode ?? 'process_ended';
  return { code, message: machine.reason === undefined ? SENTENCES[code] : `${SENTENCES[code]}: ${machine.reason}` };
}

/** The host does not respond, so the VM's fate is unknown. */
export const HOST_LOST: Reason = { code: 'host_lost', message: 'the host of its machine does not answer' };

/** The host responds but does not know the VM. */
export const MACHINE_LOST: Reason = { code: 'machine_lost', message: 'its host no longer has its machine' };

/** The host responds but has lost the disk of a VM that did not run. */
export const DISK_LOST: Reason = {
  code: 'disk_lost',
  message: 'its host has neither a snapshot nor a disk of it any more',
};

/** Codes after which the VM may reappear unharmed. */
export const LOST_FROM_SIGHT: ReadonlySet<string> = new Set([HOST_LOST.code, MACHINE_LOST.code]);
