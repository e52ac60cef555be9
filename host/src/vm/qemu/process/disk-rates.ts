// Rates of a VM's disk, kept by QEMU: guests wait, and no other program of the host notices.
import { z } from 'zod';
import { DISK_BACKEND } from '../machine/machine.ts';
import type { QmpSession } from '../machine/qmp.ts';

/** Reads and writes together; 0: unlimited. */
export interface DiskRates {
  requestsPerSecond: number;
  mibPerSecond: number;
}

export const UNLIMITED: DiskRates = { requestsPerSecond: 0, mibPerSecond: 0 };

const MIB = 2 ** 20;

/** Not part of a snapshot: each start sets them. */
export async function limitDisk(qmp: QmpSession, rates: DiskRates, signal: AbortSignal): Promise<void> {
  const total = { bps: rates.mibPerSecond * MIB, iops: rates.requestsPerSecond };
  const each = { bps_rd: 0, bps_wr: 0, iops_rd: 0, iops_wr: 0 };
  await qmp.command('block_set_io_throttle', { id: DISK_BACKEND, ...total, ...each }, z.unknown(), { signal });
}
