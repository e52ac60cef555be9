// Resizes a VM: adds missing devices, removes surplus ones. Shared by fresh restores, wakes and
// running VMs. Failed changes are rolled back; a disk only grows.
import { z } from 'zod';
import { boundedMessageOf } from '../../host-error.ts';
import { DriverError, ResizeFailed, type VmSize } from '../../driver.ts';
import { moduleSizes, plugCpus, plugModules, unplugCpus, unplugModules } from './hotplug.ts';
import { DISK_MAX_GIB, MEMORY_MAX_MIB, MEMORY_STEP_MIB, TEMPLATE_SIZE, VCPU_MAX } from '../../machine-size.ts';
import { readPlugged, sizeOf, type MemoryModule, type Plugged } from './plugged.ts';
import type { QmpSession } from './qmp.ts';

const GIB = 2 ** 30;
/**
 * A cooperating guest releases a device in a fraction of this time; memory in use must be migrated
 * first.
 */
const UNPLUG_DEADLINE_MS = 15_000;

/** The fault of a size, as a sentence that states the limits; null if valid. */
export function faultInSize({ vcpu, memoryMib, diskGib }: VmSize): string | null {
  if (vcpu < TEMPLATE_SIZE.vcpu || vcpu > VCPU_MAX)
    return `a VM has ${TEMPLATE_SIZE.vcpu} to ${VCPU_MAX} vCPUs, not ${vcpu}`;

  if (memoryMib < TEMPLATE_SIZE.memoryMib || memoryMib > MEMORY_MAX_MIB || memoryMib % MEMORY_STEP_MIB !== 0) {
    return (
      `a VM has ${TEMPLATE_SIZE.memoryMib} to ${MEMORY_MAX_MIB} MiB of memory ` +
      `in steps of ${MEMORY_STEP_MIB}, not ${memoryMib}`
    );
  }

  if (diskGib < TEMPLATE_SIZE.diskGib || diskGib > DISK_MAX_GIB)
    return `a VM has a disk of ${TEMPLATE_SIZE.diskGib} to ${DISK_MAX_GIB} GiB, not ${diskGib}`;

  return null;
}

interface ResizeOrder {
  qmp: QmpSession;
  to: VmSize;
  /**
   * Called with the new size before the disk grows; its file may be that large once this resolves.
   */
  allowDisk: (diskGib: number) => Promise<void>;
  signal: AbortSignal;
}

/**
 * Resolves with the VM's resulting size, smaller than before only where the guest released devices
 * in time. Rejects with {@link ResizeFailed} if a device cannot be added or the signal aborts;
 * added devices are then removed as far as the guest cooperates.
 */
export async function resizeQemu(order: ResizeOrder): Promise<VmSize> {
  const { qmp, to, signal } = order;
  const fault = faultInSize(to);
  if (fault !== null) throw new DriverError(fault);

  const before = await readPlugged(qmp, signal);
  const had = sizeOf(before);
  try {
    await grow(order, had);
    if (to.vcpu < had.vcpu) await unplugCpus(qmp, before.cpus.slice(to.vcpu - had.vcpu), UNPLUG_DEADLINE_MS, signal);

    if (to.memoryMib < had.memoryMib) await shrinkMemory(qmp, before.modules, had.memoryMib - to.memoryMib, signal);

    return sizeOf(await readPlugged(qmp, signal));
  } catch (error) {
    throw new ResizeFailed(boundedMessageOf(error), await removeAdded(qmp, before, error), error);
  }
}

/** Requires a running VM: QEMU cannot resize a disk between loading state and resuming. */
export async function growDisk(qmp: QmpSession, diskGib: number, signal: AbortSignal): Promise<void> {
  await qmp.command('block_resize', { 'node-name': 'disk', size: diskGib * GIB }, z.unknown(), { signal });
}

/** Disk last, because a larger disk cannot be undone. */
async function grow({ qmp, to, allowDisk, signal }: ResizeOrder, had: VmSize): Promise<void> {
  await plugCpus(qmp, Math.max(0, to.vcpu - had.vcpu), signal);
  await plugModules(qmp, moduleSizes(Math.max(0, to.memoryMib - had.memoryMib)), signal);
  if (to.diskGib > had.diskGib) {
    await allowDisk(to.diskGib);
    await growDisk(qmp, to.diskGib, signal);
  }
}

/**
 * Removes devices added by a failed resize, as far as the guest releases them. Resolves with the
 * remaining size, which is read from QEMU: a command may have succeeded although its response was
 * not awaited.
 */
async function removeAdded(qmp: QmpSession, before: Plugged, failure: unknown): Promise<VmSize> {
  // A separate timeout: the caller's may have expired.
  const late = AbortSignal.timeout(3 * UNPLUG_DEADLINE_MS);
  try {
    const { cpus, modules } = await readPlugged(qmp, late);
    const moreCpus = cpus.filter((number) => !before.cpus.includes(number));
    const moreModules = modules.map(({ id }) => id).filter((id) => before.modules.every((module) => module.id !== id));
    await unplugCpus(qmp, moreCpus, UNPLUG_DEADLINE_MS, late);
    await unplugModules(qmp, moreModules, UNPLUG_DEADLINE_MS, late);
    return sizeOf(await readPlugged(qmp, late));
  } catch (error) {
    const undone = `the hot-plug could not be undone: ${boundedMessageOf(error)}`;
    const both = `${boundedMessageOf(failure)}; ${undone}`;
    throw new AggregateError([failure, error], both, { cause: error });
  }
}

/**
 * Removes modules that add up to the surplus. If none fits, a larger module is removed and a
 * smaller one added. Never goes below the target; a guest may keep modules.
 */
async function shrinkMemory(
  qmp: QmpSession,
  modules: readonly MemoryModule[],
  surplusMib: number,
  signal: AbortSignal,
): Promise<void> {
  const chosen = modulesToDrop(modules, surplusMib);
  const gone = await unplugModules(qmp, chosen.ids, UNPLUG_DEADLINE_MS, signal);
  if (chosen.exchange !== null && gone.includes(chosen.exchange.id))
    await plugModules(qmp, moduleSizes(chosen.exchange.forMib), signal);
}

/** Pure; exported for its test. */
export function modulesToDrop(
  modules: readonly MemoryModule[],
  surplusMib: number,
): { ids: string[]; exchange: { id: string; forMib: number } | null } {
  let left = surplusMib;
  const ids: string[] = [];
  // Among equal sizes the newest first: older modules more likely hold unmovable pages.
  const bySize = modules.toSorted((a, b) => b.sizeMib - a.sizeMib || b.slot - a.slot);
  for (const { id, sizeMib } of bySize) {
    if (sizeMib <= left) {
      ids.push(id);
      left -= sizeMib;
    }
  }
  const larger = bySize.findLast(({ id, sizeMib }) => sizeMib > left && !ids.includes(id));
  if (left === 0 || larger === undefined) return { ids, exchange: null };

  return { ids: [...ids, larger.id], exchange: { id: larger.id, forMib: larger.sizeMib - left } };
}
