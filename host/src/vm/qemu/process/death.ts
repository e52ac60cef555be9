// Determines why a VM's process ended: the guest's end as reported by QEMU, the process's exit, and
// whether the host ran out of memory. Pure except for one kernel counter.
import { readFileSync } from 'node:fs';
import type { VmEnd } from '../../driver.ts';

/** QEMU's shutdown reason, and the guest kernel's panic message. */
export interface GuestEnd {
  shutdownReason: string;
  panic: string | null;
}

export interface SeenEnd {
  pid: number;
  guest: GuestEnd | null;
  /**
   * Null if unobserved: the process of an earlier daemon. Exit code as reported by bwrap, 128 + n
   * for signal n.
   */
  exit: { code: number | null; message: string } | null;
  /** Memory that had run out when the kernel killed the process; null: neither. */
  outOfMemory: 'vm' | 'host' | null;
}

const SIGKILL_CODE = 128 + 9;
/**
 * Signals raised by a program's own faults: ILL, TRAP, ABRT, BUS, FPE, SEGV, XCPU, XFSZ, SYS (its
 * system call filter).
 */
const FAULTS = [4, 5, 6, 7, 8, 11, 24, 25, 31].map((signal) => 128 + signal);

const OUT_OF_MEMORY = {
  host: 'the host ran out of memory and its kernel killed this VM',
  vm: 'QEMU used more memory than the size of its VM allows, and the kernel killed it',
};

/** Code and message. Names in the message come from a possibly compromised QEMU. */
export function nameEnd({ pid, guest, exit, outOfMemory }: SeenEnd): Pick<VmEnd, 'code' | 'reason'> {
  if (guest !== null) return nameGuestEnd(guest);

  // Without a code bwrap was killed with QEMU.
  const killed = exit === null || exit.code === null || exit.code === SIGKILL_CODE;
  if (killed && outOfMemory !== null) return { code: 'out_of_memory', reason: OUT_OF_MEMORY[outOfMemory] };

  if (exit === null) return { code: 'process_ended', reason: `the QEMU process ${pid} has exited` };

  const crashed = exit.code !== null && exit.code !== 0 && (exit.code < 128 || isFault(exit.code));
  return { code: crashed ? 'qemu_crash' : 'process_ended', reason: exit.message };
}

/** True if an exit code, as reported by bwrap, means a fault of the program itself. */
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
      return { code: 'guest_reboot', reason: 'the guest rebooted, which ends the VM' };
    case 'host-signal':
      return { code: 'process_ended', reason: 'QEMU was stopped by a signal' };
    case 'host-error':
      return { code: 'qemu_crash', reason: 'QEMU exited after an internal error' };
    default:
      return { code: 'process_ended', reason: `QEMU exited: ${shutdownReason.slice(0, 64)}` };
  }
}

/** Number of OOM kills since the host booted. */
export function oomKills(): number {
  // Asynchronous, it would cost the daemon several times as much, four times a second.
  const text = readFileSync('/proc/vmstat', 'latin1');
  return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0);
}
