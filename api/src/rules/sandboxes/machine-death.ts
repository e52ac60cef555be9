// Reasons for the loss of a sandbox's VM: a code for programs and a message for people. Pure.

import type { VmDeathCode } from '@berth/protocol/host.ts';

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

/** The reason of a dead VM as far as its host knows; `reason` is the host's text. */
export function deathOf(vm: { deathCode?: VmDeathCode | undefined; reason?: string | undefined }): Reason {
  const code = vm.deathCode ?? 'process_ended';
  return { code, message: vm.reason === undefined ? SENTENCES[code] : `${SENTENCES[code]}: ${vm.reason}` };
}

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
