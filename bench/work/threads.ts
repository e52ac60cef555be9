// CPU time of running processes by thread, from /proc.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { nullOn } from '@berth/os/errors.ts';
import { readStat } from '@berth/os/process-identity.ts';

/** Thread of QEMU that runs the guest: "CPU 0/TCG", "CPU 0/KVM". */
const VCPU = /^CPU \d+\//;

/** CPU milliseconds of the vCPU threads of a process, and of all others. */
export interface ThreadTimes {
  vcpuMs: number;
  otherMs: number;
}

/** Times of the living threads; null for a process that is gone. */
export function threadTimes(pid: number): ThreadTimes | null {
  const times = { vcpuMs: 0, otherMs: 0 };
  const folder = `/proc/${pid}/task`;
  const threads = nullOn(['ENOENT', 'ESRCH'], () => readdirSync(folder));
  if (threads === null) return null;
  for (const thread of threads) {
    const read = (name: string): string | null =>
      nullOn(['ENOENT', 'ESRCH'], () => readFileSync(join(folder, thread, name), 'utf8'));
    // Nanoseconds on the CPU, nanoseconds waiting, time slices.
    const [ran, name] = [read('schedstat'), read('comm')];
    if (ran !== null && name !== null) times[VCPU.test(name) ? 'vcpuMs' : 'otherMs'] += parseInt(ran, 10) / 1e6;
  }
  return times;
}

/** The process and all below it, by pid, with their names. */
export function familyOf(root: number): Map<number, string> {
  const found = new Map<number, { name: string; parent: number }>();
  for (const entry of readdirSync('/proc')) {
    const stat = /^\d+$/.test(entry) ? readStat(Number(entry)) : null;
    if (stat !== null) found.set(Number(entry), { name: stat.name, parent: Number(stat.fields[1]) });
  }
  const family = new Map<number, string>();
  const add = (pid: number): void => {
    family.set(pid, found.get(pid)?.name ?? '');
    for (const [child, { parent }] of found) if (parent === pid && !family.has(child)) add(child);
  };
  if (found.has(root)) add(root);
  return family;
}
