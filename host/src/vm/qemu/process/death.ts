// Why a VM's process ended, from what was seen of it: the guest's own end as QEMU told it, how the
// process ended, and whether the machine ran out of memory. Pure but for one counter of the kernel.
import { readFile } from 'node:fs/promises';
import type { VmEnd } from '../../driver.ts';

/** QEMU's name for a shutdown, and what the guest's kernel said of a panic. */
export interface GuestEnd {
  shutdownReason: string;
  panic: string | null;
}

export interface SeenEnd {
  pid: number;
  guest: GuestEnd | null;
  /**
   * Null when nobody could see it: the process of an earlier daemon. Code as bwrap reports it, 128
   * + n for signal n.
   */
  exit: { code: number | null; message: string } | null;
  /**
   * Whether the kernel ended some process for want of memory while this one was last seen or soon
   * before.
   */
  outOfMemory: boolean;
}

const SIGKILL_CODE = 128 + 9;
/**
 * Signals that a program gets for faults of its own: ILL, TRAP, ABRT, BUS, FPE, SEGV, XCPU, XFSZ,
 * SYS (its system call filter).
 */
const FAULTS = [4, 5, 6, 7, 8, 11, 24, 25, 31].map((signal) => 128 + signal);

/** Code and sentence. Names in it come from a QEMU that may be in foreign hands. */
export function nameEnd({ pid, guest, exit, outOfMemory }: SeenEnd): Pick<VmEnd, 'code' | 'reason'> {
  if (guest !== null) return nameGuestEnd(guest);

  const killed = exit === null || exit.code === SIGKILL_CODE;
  if (killed && outOfMemory)
    return { code: 'out_of_memory', reason: 'the machine ran out of memory and its kernel ended this VM' };

  if (exit === null) return { code: 'process_ended', reason: `the QEMU process ${pid} has ended` };

  const crashed = exit.code !== null && exit.code !== 0 && (exit.code < 128 || isFault(exit.code));
  return { code: crashed ? 'qemu_crash' : 'process_ended', reason: exit.message };
}

/** Whether the code, as bwrap reports it, is of a program that ended by a fault of its own. */
export function isFault(code: number | null): boolean {
  return code !== null && FAULTS.includes(code);
}

function nameGuestEnd({ shutdownReason, panic }: GuestEnd): Pick<VmEnd, 'code' | 'reason'> {
  if (panic !== null || shutdownReason === 'guest-panic')
    return { code: 'guest_panic', reason: `the guest's kernel panicked${panic === null ? '' : `: ${panic}`}` };

  switch (shutdownReason) {
    case 'guest-shutdown':
      return { code: 'guest_shutdown', reason: 'the guest shut itself down' };
    case 'guest-reset':
      return { code: 'guest_reboot', reason: 'the guest rebooted itself, which ends the machine' };
    case 'host-signal':
      return { code: 'process_ended', reason: 'QEMU was told to end by a signal' };
    case 'host-error':
      return { code: 'qemu_crash', reason: 'QEMU ended because of an error of its own' };
    default:
      return { code: 'process_ended', reason: `QEMU ended: ${shutdownReason.slice(0, 64)}` };
  }
}

/** How many processes the kernel has ended for want of memory since the machine's start. */
export async function oomKills(): Promise<number> {
  const text = await readFile('/proc/vmstat', 'latin1');
  return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0);
}
