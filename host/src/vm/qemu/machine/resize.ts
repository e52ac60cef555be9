// Brings a machine to a size: plugs in what is missing, takes away what is too much. One way for a
// fresh restore, a machine that was woken and one that runs. What cannot be done is undone; a disk
// only grows.
import { z } from 'zod';
import { messageOf } from '../../host-error.ts';
import { DriverError, ResizeFailed, type VmSize } from '../../driver.ts';
import { moduleSizes, plugCpus, plugModules, unplugCpus, unplugModules } from './hotplug.ts';
import { DISK_MAX_GIB, MEMORY_MAX_MIB, MEMORY_STEP_MIB, TEMPLATE_SIZE, VCPU_MAX } from '../../machine-size.ts';
import { readPlugged, sizeOf, type MemoryModule, type Plugged } from './plugged.ts';
import type { QmpSession } from './qmp.ts';

const GIB = 2 ** 30;
/**
 * A guest that lets go of a device does so in a fraction of this; memory that holds pages must be
 * emptied first.
 */
const UNPLUG_DEADLINE_MS = 15_000;

/**
 * What is wrong with a size, as a sentence that says what is allowed; null when a machine can have
 * it.
 */
export function faultInSize({ vcpu, memoryMib, diskGib }: VmSize): string | null {
  if (vcpu < TEMPLATE_SIZE.vcpu || vcpu > VCPU_MAX)
    return `a VM has ${TEMPLATE_SIZE.vcpu} to ${VCPU_MAX} vCPUs, not ${vcpu}`;

  if (memoryMib < TEMPLATE_SIZE.memoryMib || memoryMib > MEMORY_MAX_MIB || memoryMib % MEMORY_STEP_MIB !== 0)
    return `a VM has ${TEMPLATE_SIZE.memoryMib} to ${MEMORY_MAX_MIB} MiB of memory in steps of ${MEMORY_STEP_MIB}, not ${memoryMib}`;

  if (diskGib < TEMPLATE_SIZE.diskGib || diskGib > DISK_MAX_GIB)
    return `a VM has a disk of ${TEMPLATE_SIZE.diskGib} to ${DISK_MAX_GIB} GiB, not ${diskGib}`;

  return null;
}

export interface ResizeOrder {
  qmp: QmpSession;
  to: VmSize;
  /**
   * Called before the disk grows, with the size that it is going to have: its file may be as large
   * when this resolves.
   */
  allowDisk: (diskGib: number) => Promise<void>;
  signal: AbortSignal;
}

/**
 * Resolves with the size the machine then has: less than before only where the guest let go of it
 * in time. Rejects with {@link ResizeFailed} when something cannot be plugged in or the signal
 * aborts; what was plugged in by then is taken away again as far as the guest lets go.
 */
export async function resizeMachine(order: ResizeOrder): Promise<VmSize> {
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
    throw new ResizeFailed(messageOf(error), await takeBack(qmp, before, error), error);
  }
}

/**
 * Of a machine that runs: QEMU changes no disk of one whose state was loaded and that did not run
 * yet.
 */
export async function growDisk(qmp: QmpSession, diskGib: number, signal: AbortSignal): Promise<void> {
  await qmp.command('block_resize', { 'node-name': 'disk', size: diskGib * GIB }, z.unknown(), { signal });
}

/** The disk comes last: it is the one that cannot be taken back. */
async function grow({ qmp, to, allowDisk, signal }: ResizeOrder, had: VmSize): Promise<void> {
  await plugCpus(qmp, Math.max(0, to.vcpu - had.vcpu), signal);
  await plugModules(qmp, moduleSizes(Math.max(0, to.memoryMib - had.memoryMib)), signal);
  if (to.diskGib > had.diskGib) {
    await allowDisk(to.diskGib);
    await growDisk(qmp, to.diskGib, signal);
  }
}

/**
 * Takes away what a failed resize plugged in, as far as the guest lets go of it, and resolves with
 * the size that is left. What that is is read: QEMU may have carried out a command whose answer
 * nobody waited for.
 */
async function takeBack(qmp: QmpSession, before: Plugged, failure: unknown): Promise<VmSize> {
  // The caller's own time may be over; this has its own.
  const late = AbortSignal.timeout(3 * UNPLUG_DEADLINE_MS);
  try {
    const { cpus, modules } = await readPlugged(qmp, late);
    const moreCpus = cpus.filter((number) => !before.cpus.includes(number));
    const moreModules = modules.map(({ id }) => id).filter((id) => before.modules.every((module) => module.id !== id));
    await unplugCpus(qmp, moreCpus, UNPLUG_DEADLINE_MS, late);
    await unplugModules(qmp, moreModules, UNPLUG_DEADLINE_MS, late);
    return sizeOf(await readPlugged(qmp, late));
  } catch (error) {
    const both = `${messageOf(failure)}; what was plugged in could not be taken back: ${messageOf(error)}`;
    throw new AggregateError([failure, error], both, { cause: error });
  }
}

/**
 * Takes away modules whose sizes make up the surplus. When none of those left fits into it, a
 * larger one goes and a smaller one comes in its place. Never below what is wanted; a guest that
 * keeps a module keeps it.
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

/** Pure; for its test. */
export function modulesToDrop(
  modules: readonly MemoryModule[],
  surplusMib: number,
): { ids: string[]; exchange: { id: string; forMib: number } | null } {
  let left = surplusMib;
  const ids: string[] = [];
  // Of the same size, the one that came last: what came first rather holds what cannot be moved.
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
