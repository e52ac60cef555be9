// Kernel figures of one running VM, from /proc and the disk file; queries neither QEMU nor the
// guest.
import { readFile, stat } from 'node:fs/promises';
import { hasCode } from '@berth/os/errors.ts';
import { DriverError, type VmFigures } from '../driver.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { bootId, isSame, readStat } from '@berth/os/process-identity.ts';
import { TAP_NAME } from '../../network/slots/slot.ts';

/** Length of a kernel clock tick (USER_HZ, the same on every Linux). */
const TICK_MS = 10;
const BYTES_PER_BLOCK = 512;
const MIB = 2 ** 20;

/** CPU time of all threads so far; null if the process exited. */
export function cpuMsOf(process: ProcessIdentity): number | null {
  const fields = readStat(process.pid)?.fields;
  if (fields === undefined) return null;

  // Fields 14 and 15 are user and kernel time, 22 the start time.
  const [user, system, startTicks] = [Number(fields[11]), Number(fields[12]), fields[19]];
  return process.bootId === bootId() && startTicks === process.startTicks ? (user + system) * TICK_MS : null;
}

/** Rejects with {@link DriverError} if the process exited. */
export async function readFigures(process: ProcessIdentity, diskPath: string): Promise<VmFigures> {
  const proc = `/proc/${process.pid}`;
  const [memory, network, disk] = await Promise.all([
    readFile(`${proc}/smaps_rollup`, 'latin1'),
    readFile(`${proc}/net/dev`, 'latin1'),
    stat(diskPath),
  ] as const).catch((error: NodeJS.ErrnoException) => {
    throw hasCode(error, 'ENOENT', 'ESRCH') ? ended(process, error) : error;
  });
  const cpuMs = cpuMsOf(process);
  if (cpuMs === null || !(await isSame(process))) throw ended(process);

  const tap = bytesOf(network, TAP_NAME);
  return {
    cpuMs,
    residentMib: kibOf(memory, 'Rss') / 1_024,
    // Memory not shared with the template's file, and so with other VMs.
    unsharedMib: (kibOf(memory, 'Anonymous') + kibOf(memory, 'Swap')) / 1_024,
    diskUsedMib: (disk.blocks * BYTES_PER_BLOCK) / MIB,
    // The guest is the TAP's other end: the host's sent bytes are the guest's received bytes.
    networkInBytes: tap.sent,
    networkOutBytes: tap.received,
  };
}

function ended(process: ProcessIdentity, cause?: unknown): DriverError {
  return new DriverError(`the QEMU process ${process.pid} has exited`, { cause });
}

function kibOf(rollup: string, field: string): number {
  return Number(new RegExp(`^${field}: +(\\d+) kB$`, 'm').exec(rollup)?.[1] ?? 0);
}

/** Counters of the process's network namespace. */
function bytesOf(netDev: string, device: string): { received: number; sent: number } {
  const fields = new RegExp(`^ *${device}: *(.+)$`, 'm').exec(netDev)?.[1]?.trim().split(/\s+/) ?? [];
  return { received: Number(fields[0] ?? 0), sent: Number(fields[8] ?? 0) };
}
