// Finds and removes slots whose data folder is gone or belongs to another instance by now. Run by
// the doctor on request; an instance reaps its own slots itself.
import { readFile, readdir, readlink, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { nullIf } from '@berth/os/errors.ts';
import { DEFAULT_REGISTRY_FOLDER, readRegistry, removeDrafts } from './slots/registry.ts';
import type { SlotEntry } from './slots/registry.ts';
import { isThere, removeSlots } from './slot-maker.ts';
import { endSlotProcesses } from './slots/slot-processes.ts';
import { FIRST_SLOT_UID, namespaceName } from './slots/slot.ts';

interface AbandonedSlot {
  number: number;
  instanceId: string;
  dataFolder: string;
  vmId: string | null;
  /** Processes that still run in the slot's namespace. The slot is removed only after they end. */
  pids: number[];
}

/** Slots of this host that no instance will free. */
export async function findAbandonedSlots(registryFolder: string = DEFAULT_REGISTRY_FOLDER): Promise<AbandonedSlot[]> {
  const abandoned: AbandonedSlot[] = [];
  for (const [number, entry] of await readRegistry(registryFolder)) {
    if (!(await isGone(entry))) continue;
    abandoned.push({ number, ...entry, pids: await processesIn(`/run/netns/${namespaceName(number)}`) });
  }
  return abandoned;
}

/** Removes the abandoned slots without processes. Resolves with the removed slots. */
export async function removeAbandonedSlots(registryFolder: string = DEFAULT_REGISTRY_FOLDER): Promise<AbandonedSlot[]> {
  const idle = (await findAbandonedSlots(registryFolder)).filter((slot) => slot.pids.length === 0);
  if (idle.length === 0) return [];
  await removeSlots(
    registryFolder,
    idle.map((slot) => slot.number),
  );
  for (const instanceId of new Set(idle.map((slot) => slot.instanceId))) await removeDrafts(registryFolder, instanceId);
  return idle;
}

/**
 * Ends the VMs of all instances whose data folders are below the folder, and removes their slots.
 */
export async function endSlotsBelow(folder: string, registryFolder: string = DEFAULT_REGISTRY_FOLDER): Promise<void> {
  if (!(await isThere(registryFolder))) return;
  const slots = [...(await readRegistry(registryFolder))].filter(([, entry]) =>
    entry.dataFolder.startsWith(`${folder}/`),
  );
  if (slots.length === 0) return;
  for (const [number] of slots) {
    const namespacePath = `/run/netns/${namespaceName(number)}`;
    await endSlotProcesses({ namespacePath, uid: FIRST_SLOT_UID + number });
  }
  await removeSlots(
    registryFolder,
    slots.map(([number]) => number),
  );
  for (const instanceId of new Set(slots.map(([, entry]) => entry.instanceId)))
    await removeDrafts(registryFolder, instanceId);
}

/** A folder without an id is in use: by a template build or by an instance being set up. */
async function isGone({ dataFolder, instanceId }: SlotEntry): Promise<boolean> {
  const owner = (await readFile(join(dataFolder, 'instance-id'), 'utf8').catch(nullIf('ENOENT', 'ENOTDIR')))?.trim();
  return owner === undefined ? !(await isThere(dataFolder)) : owner !== instanceId;
}

async function processesIn(namespacePath: string): Promise<number[]> {
  const namespace = await stat(namespacePath).catch(nullIf('ENOENT'));
  if (namespace === null) return [];
  const pids: number[] = [];
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    // Null if the process exited meanwhile, or has more rights than this one, which no VM has.
    const link = await readlink(`/proc/${name}/ns/net`).catch(nullIf('ENOENT', 'ESRCH', 'EACCES', 'EPERM'));
    if (link === `net:[${namespace.ino}]`) pids.push(Number(name));
  }
  return pids;
}
