// Locates the guest's memory in QEMU's address space: QEMU's report, checked against the kernel's
// list of its mappings. A compromised QEMU can only misdirect within its own process.
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { DriverError } from '../../driver.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { TEMPLATE_SIZE } from '../../machine-size.ts';
import { moduleMemory, type MemoryModule } from './plugged.ts';
import type { QmpSession } from './qmp.ts';

const MIB = 2 ** 20;

/** A block of guest memory. Plain data, passed to another thread. */
export interface RamBlock {
  /** Address in QEMU's address space. */
  address: number;
  sizeBytes: number;
  /** Initial content: the template's memory or zeros. */
  origin: 'template' | 'zeroes';
}

/** Name, page size, offset, used and total length, address. */
const LINE =
  /^\s*(\S{1,64})\s+\d+ KiB\s+0x[0-9a-f]{1,16}\s+0x[0-9a-f]{1,16}\s+0x([0-9a-f]{1,16})\s+0x([0-9a-f]{1,16})\b/;

/**
 * The template's memory first, then the modules in the given order. Rejects with {@link
 * DriverError} if QEMU reports anything else.
 */
export async function findRamBlocks(
  qmp: QmpSession,
  process: ProcessIdentity,
  modules: readonly Pick<MemoryModule, 'id' | 'sizeMib'>[],
  signal: AbortSignal,
): Promise<RamBlock[]> {
  const text = await qmp.command('human-monitor-command', { 'command-line': 'info ramblock' }, z.string(), { signal });
  const maps = await readFile(`/proc/${process.pid}/maps`, 'latin1');
  return [
    blockOf(text, maps, 'mem', TEMPLATE_SIZE.memoryMib * MIB, 'template'),
    ...modules.map(({ id, sizeMib }) => blockOf(text, maps, moduleMemory(id), sizeMib * MIB, 'zeroes')),
  ];
}

/** Pure; exported for its test. */
export function blockOf(
  infoRamblock: string,
  maps: string,
  name: string,
  sizeBytes: number,
  origin: RamBlock['origin'],
): RamBlock {
  const found = infoRamblock
    .split('\n')
    .map((line) => LINE.exec(line))
    .find((match) => match?.[1] === name || match?.[1] === `/objects/${name}`);
  const [total, address] = [Number.parseInt(found?.[2] ?? '', 16), Number.parseInt(found?.[3] ?? '', 16)];
  if (total !== sizeBytes) throw new DriverError(`QEMU has no memory ${name} of ${sizeBytes / MIB} MiB`);

  if (!isMapped(maps, address, address + sizeBytes))
    throw new DriverError(`QEMU reports memory ${name} at an unmapped address`);

  return { address, sizeBytes, origin };
}

/** True if contiguous readable, writable, private mappings cover the range. */
function isMapped(maps: string, from: number, to: number): boolean {
  if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to)) return false;

  let covered = from;
  for (const line of maps.split('\n')) {
    const match = /^([0-9a-f]+)-([0-9a-f]+) rw.p /.exec(line);
    if (match === null) continue;

    const [start, end] = [Number.parseInt(match[1] ?? '', 16), Number.parseInt(match[2] ?? '', 16)];
    if (start <= covered && covered < end) covered = end;
  }
  return covered >= to;
}
