// Devices of a running VM beyond the template's, as reported by QEMU. QEMU may be compromised:
// names and numbers are validated here, and unknown devices are errors. Changes nothing.
import { z } from 'zod';
import { DriverError, type VmSize } from '../../driver.ts';
import {
  DISK_MAX_GIB,
  MEMORY_MAX_MIB,
  MEMORY_SLOTS,
  MEMORY_STEP_MIB,
  TEMPLATE_SIZE,
  VCPU_MAX,
} from '../../machine-size.ts';
import type { QmpSession } from './qmp.ts';

const MIB = 2 ** 20;
const GIB = 2 ** 30;

/** A memory module beyond the template's memory. Passed to QEMU again to recreate a saved VM. */
const memoryModule = z.strictObject({
  /** `module0` and up; its memory is the object `module0-memory`. */
  id: z.string().regex(/^module\d{1,3}$/),
  sizeMib: z.int().min(MEMORY_STEP_MIB).max(MEMORY_MAX_MIB).multipleOf(MEMORY_STEP_MIB),
  /** Guest address: above the first 4 GiB, below the end of device memory. */
  address: z
    .int()
    .min(4 * GIB)
    .max(2 ** 40)
    .multipleOf(MEMORY_STEP_MIB * MIB),
  slot: z
    .int()
    .min(0)
    .max(MEMORY_SLOTS - 1),
});
export type MemoryModule = z.infer<typeof memoryModule>;

/** All devices of a VM beyond the template's. */
export const plugged = z.strictObject({
  /** Core numbers of the vCPUs after the first, ascending. */
  cpus: z
    .array(
      z
        .int()
        .min(TEMPLATE_SIZE.vcpu)
        .max(VCPU_MAX - 1),
    )
    .max(VCPU_MAX - 1),
  modules: z.array(memoryModule).max(MEMORY_SLOTS),
  diskGib: z.int().min(TEMPLATE_SIZE.diskGib).max(DISK_MAX_GIB),
});
export type Plugged = z.infer<typeof plugged>;

/**
 * A place for a vCPU. With a single socket and a thread per core (machine.ts), cores number the
 * places.
 */
const cpuPlace = z.object({
  type: z.string(),
  props: z.record(z.string(), z.number()),
  'qom-path': z.string().optional(),
});
const cpuPlaces = z.array(cpuPlace).max(VCPU_MAX);
type CpuPlace = z.infer<typeof cpuPlace>;

const memoryDevices = z
  .array(
    z.object({
      type: z.literal('dimm'),
      data: z.object({ id: z.string(), memdev: z.string(), addr: z.number(), size: z.number(), slot: z.number() }),
    }),
  )
  .max(MEMORY_SLOTS);

const blockNodes = z
  .array(z.object({ 'node-name': z.string().optional(), image: z.object({ 'virtual-size': z.int().min(0) }) }))
  .max(64);

/**
 * Queries QEMU for all devices. Rejects with {@link DriverError} if the response cannot describe
 * one of our VMs.
 */
export async function readPlugged(qmp: QmpSession, signal: AbortSignal): Promise<Plugged> {
  const places = await readCpuPlaces(qmp, signal);
  const found = plugged.safeParse({
    cpus: places
      .filter(isPluggedCpu)
      .map(cpuNumber)
      .sort((a, b) => a - b),
    modules: await readModules(qmp, signal),
    diskGib: await readDiskGib(qmp, signal),
  });
  if (!found.success || new Set(found.data.cpus).size !== found.data.cpus.length)
    throw new DriverError('QEMU lists unknown devices');

  return found.data;
}

/** Size of a VM with these devices. */
export function sizeOf({ cpus, modules, diskGib }: Plugged): VmSize {
  const memoryMib = modules.reduce<number>((sum, { sizeMib }) => sum + sizeMib, TEMPLATE_SIZE.memoryMib);
  return { vcpu: TEMPLATE_SIZE.vcpu + cpus.length, memoryMib, diskGib };
}

/** All vCPU places, occupied or free. */
export async function readCpuPlaces(qmp: QmpSession, signal: AbortSignal): Promise<CpuPlace[]> {
  return qmp.command('query-hotpluggable-cpus', undefined, cpuPlaces, { signal });
}

/** The first vCPU has no id and is not hot-plugged. */
export function isPluggedCpu(place: CpuPlace): boolean {
  return place['qom-path']?.startsWith('/machine/peripheral/') === true;
}

export function cpuNumber({ props }: CpuPlace): number {
  return props['core-id'] ?? 0;
}

export function cpuId(number: number): string {
  return `cpu${number}`;
}

/**
 * Name prefix of the objects that count threads of emulated vCPUs (hotplug.ts), except the first
 * vCPU's.
 */
export const VCPU_THREAD_PREFIX = 'vcpu-thread-';

export function vcpuThread(number: number): { 'qom-type': string; id: string } {
  return { 'qom-type': 'rng-builtin', id: `${VCPU_THREAD_PREFIX}${number}` };
}

/** Id of the memory object of a module. */
export function moduleMemory(id: string): string {
  return `${id}-memory`;
}

/** The memory modules, by slot. */
export async function readModules(qmp: QmpSession, signal: AbortSignal): Promise<MemoryModule[]> {
  const devices = await qmp.command('query-memory-devices', undefined, memoryDevices, { signal });
  const modules = devices.map(({ data }) => {
    const parsed = memoryModule.safeParse({
      id: data.id,
      sizeMib: data.size / MIB,
      address: data.addr,
      slot: data.slot,
    });
    if (!parsed.success || data.memdev !== `/objects/${moduleMemory(data.id)}`)
      throw new DriverError('QEMU lists an unknown memory module');

    return parsed.data;
  });
  if (new Set(modules.map(({ id }) => id)).size !== modules.length)
    throw new DriverError('QEMU lists a memory module twice');

  return modules.sort((a, b) => a.slot - b.slot);
}

async function readDiskGib(qmp: QmpSession, signal: AbortSignal): Promise<number> {
  const nodes = await qmp.command('query-named-block-nodes', { flat: true }, blockNodes, { signal });
  const disk = nodes.find((node) => node['node-name'] === 'disk');
  if (disk === undefined) throw new DriverError('QEMU has no disk');

  return disk.image['virtual-size'] / GIB;
}
