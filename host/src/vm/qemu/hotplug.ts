// What a VM has beyond the template: vCPUs, one memory module and a larger disk, plugged into a restored machine before its vCPUs run.
// The guest finds them as it goes on; bringing them online and checking that they are there is the guest daemon's.
import { setTimeout as delay } from 'node:timers/promises';
import type { VmSpec } from '@berth/protocol/host.ts';
import { z } from 'zod';
import { DriverError } from '../driver.ts';
import { DISK_MAX_GIB } from './disk.ts';
import { MEMORY_MAX_MIB, TEMPLATE_SIZE, VCPU_MAX } from './machine.ts';
import type { QmpSession } from './qmp.ts';

/** The guest's kernel takes memory in blocks of this size. */
export const MEMORY_STEP_MIB = 128;

const GIB = 2 ** 30;
const UNPLUG_DEADLINE_MS = 60_000;
const UNPLUG_STEP_MS = 50;

const hotpluggableCpus = z.array(
  z.object({ type: z.string(), props: z.record(z.string(), z.number()), 'qom-path': z.string().optional() }),
);

type Size = Pick<VmSpec, 'vcpu' | 'memoryMib' | 'diskGib'>;

/** What is wrong with a size, as a sentence that says what is allowed; null when a machine can have it. */
export function faultInSize({ vcpu, memoryMib, diskGib }: Size): string | null {
  if (vcpu < TEMPLATE_SIZE.vcpu || vcpu > VCPU_MAX) {
    return `a VM has ${TEMPLATE_SIZE.vcpu} to ${VCPU_MAX} vCPUs, not ${vcpu}`;
  }
  if (memoryMib < TEMPLATE_SIZE.memoryMib || memoryMib > MEMORY_MAX_MIB || memoryMib % MEMORY_STEP_MIB !== 0) {
    return `a VM has ${TEMPLATE_SIZE.memoryMib} to ${MEMORY_MAX_MIB} MiB of memory in steps of ${MEMORY_STEP_MIB}, not ${memoryMib}`;
  }
  if (diskGib < TEMPLATE_SIZE.diskGib || diskGib > DISK_MAX_GIB) {
    return `a VM has a disk of ${TEMPLATE_SIZE.diskGib} to ${DISK_MAX_GIB} GiB, not ${diskGib}`;
  }
  return null;
}

/** Plugs in what the size has beyond the template's. Rejects with {@link DriverError} or QmpError. */
export async function plugIn(qmp: QmpSession, size: Size, signal: AbortSignal): Promise<void> {
  const fault = faultInSize(size);
  if (fault !== null) {
    throw new DriverError(fault);
  }
  await plugCpus(qmp, size.vcpu - TEMPLATE_SIZE.vcpu, signal);
  await plugMemory(qmp, size.memoryMib - TEMPLATE_SIZE.memoryMib, signal);
  if (size.diskGib > TEMPLATE_SIZE.diskGib) {
    await qmp.command('block_resize', { 'node-name': 'disk', size: size.diskGib * GIB }, z.unknown(), { signal });
  }
}

/** Plugs in that many more vCPUs, in the order of their numbers, so that a machine that is saved can be made again the same. */
export async function plugCpus(qmp: QmpSession, count: number, signal: AbortSignal): Promise<void> {
  if (count === 0) {
    return;
  }
  const places = await qmp.command('query-hotpluggable-cpus', undefined, hotpluggableCpus, { signal });
  const free = places.filter((place) => place['qom-path'] === undefined).sort((a, b) => numberOf(a.props) - numberOf(b.props));
  if (free.length < count) {
    throw new DriverError(`QEMU has room for ${free.length} more vCPUs, ${count} are wanted`);
  }
  for (const { type, props } of free.slice(0, count)) {
    await qmp.command('device_add', { driver: type, id: cpuId(props), ...props }, z.unknown(), { signal });
  }
}

/**
 * Takes all vCPUs but the template's own away again. Resolves when the guest has let them go. Rejects with {@link DriverError} when it does not.
 */
export async function unplugCpus(qmp: QmpSession, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + UNPLUG_DEADLINE_MS;
  for (const id of await pluggedCpus(qmp, signal)) {
    await qmp.command('device_del', { id }, z.unknown(), { signal });
  }
  while ((await pluggedCpus(qmp, signal)).length > 0) {
    if (performance.now() > deadline) {
      throw new DriverError(`the guest did not let go of its vCPUs within ${UNPLUG_DEADLINE_MS / 1_000} s`);
    }
    await delay(UNPLUG_STEP_MS, undefined, { signal });
  }
}

/** Ids of the vCPUs that were plugged in: the first has no id of its own. */
async function pluggedCpus(qmp: QmpSession, signal: AbortSignal): Promise<string[]> {
  const places = await qmp.command('query-hotpluggable-cpus', undefined, hotpluggableCpus, { signal });
  return places.filter((place) => place['qom-path']?.startsWith('/machine/peripheral/') === true).map((place) => cpuId(place.props));
}

/** One socket, one thread a core (machine.ts): cores number them. */
function cpuId(props: Readonly<Record<string, number>>): string {
  return `cpu${numberOf(props)}`;
}

function numberOf(props: Readonly<Record<string, number>>): number {
  return props['core-id'] ?? 0;
}

async function plugMemory(qmp: QmpSession, sizeMib: number, signal: AbortSignal): Promise<void> {
  if (sizeMib === 0) {
    return;
  }
  const backend = { 'qom-type': 'memory-backend-ram', id: 'module0-memory', size: sizeMib * 2 ** 20 };
  await qmp.command('object-add', backend, z.unknown(), { signal });
  await qmp.command('device_add', { driver: 'pc-dimm', id: 'module0', memdev: 'module0-memory' }, z.unknown(), { signal });
}
