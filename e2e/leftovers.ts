// What a Berth has on the machine beside its data folder, found from the outside: registry entries, namespaces, veths, processes of slot uids,
// VM folders. Reads the kernel and the disk only, never the service, so that it also tells after everything was killed.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DEFAULT_REGISTRY_FOLDER, readRegistry, type SlotEntry } from '@berth/host/vm/qemu/network/registry.ts';
import { END_OF_SLOT_UIDS, FIRST_SLOT_UID, HOST_VETH_PREFIX, NAMESPACE_PREFIX } from '@berth/host/vm/qemu/network/slot.ts';

type Entry = SlotEntry & { number: number };

/**
 * Everything that belongs to the data folder's instance or to nobody: an entry in the registry, a namespace, veth or process whose slot no entry
 * names, a VM's folder. Empty when all is gone. Other instances on the machine are not counted. A running host daemon keeps idle slots ahead of time;
 * `idleSlots: false` leaves those out.
 */
export async function leftoversOf(dataFolder: string, { idleSlots = true } = {}): Promise<string[]> {
  const entries = await registryEntries();
  const known = new Set(entries.map((entry) => entry.number));
  const unknown = (name: string, prefix: string): boolean => {
    const number = name.startsWith(prefix) ? name.slice(prefix.length) : '';
    return /^\d+$/.test(number) && !known.has(Number(number));
  };
  const own = entries.filter((entry) => entry.dataFolder === dataFolder);
  const [namespaces, veths, processes, folders] = await Promise.all([
    namesIn('/run/netns'),
    namesIn('/sys/class/net'),
    slotProcesses(),
    namesIn(join(dataFolder, 'host', 'vms')),
  ]);
  return [
    ...own
      .filter(({ vmId }) => idleSlots || vmId !== null)
      .map((entry) => `slot ${entry.number}${entry.vmId === null ? '' : ` of ${entry.vmId}`}`),
    ...namespaces.filter((name) => unknown(name, NAMESPACE_PREFIX)).map((name) => `namespace ${name}`),
    ...veths.filter((name) => unknown(name, HOST_VETH_PREFIX)).map((name) => `veth ${name}`),
    ...processes.filter(({ slot }) => !known.has(slot)).map(({ pid, slot }) => `process ${pid} of slot ${slot}`),
    ...folders.map((name) => `folder host/vms/${name}`),
  ];
}

/** Ids of the VMs that hold a slot of the data folder's instance. */
export async function vmsWithSlots(dataFolder: string): Promise<string[]> {
  const entries = await registryEntries();
  return entries.filter((entry) => entry.dataFolder === dataFolder).flatMap(({ vmId }) => (vmId === null ? [] : [vmId]));
}

/** Processes that run as the uid of the slot that the VM has claimed: its QEMU. */
export async function processesOfVm(vmId: string): Promise<number[]> {
  const slots = new Set((await registryEntries()).filter((entry) => entry.vmId === vmId).map((entry) => entry.number));
  return (await slotProcesses()).filter(({ slot }) => slots.has(slot)).map(({ pid }) => pid);
}

async function registryEntries(): Promise<Entry[]> {
  return [...(await readRegistry(DEFAULT_REGISTRY_FOLDER))].map(([number, entry]) => ({ number, ...entry }));
}

/** Processes under slot uids, whose jail's process space lies right under ours: a machine that another test plays has a space of its own between. */
async function slotProcesses(): Promise<{ pid: number; slot: number }[]> {
  const spacesHere = spacesOf(await readFile('/proc/self/status', 'utf8'));
  const found: { pid: number; slot: number }[] = [];
  for (const name of await namesIn('/proc')) {
    const status = /^\d+$/.test(name) ? await readFile(`/proc/${name}/status`, 'utf8').catch(absent) : null;
    if (status === null || /^State:\s+Z/m.test(status) || spacesOf(status) !== spacesHere + 1) continue;
    const slot = Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]) - FIRST_SLOT_UID;
    if (slot >= 0 && slot < END_OF_SLOT_UIDS - FIRST_SLOT_UID) found.push({ pid: Number(name), slot });
  }
  return found;
}

/** Depth of the process spaces around a process, with the first one counted as 1. */
function spacesOf(status: string): number {
  return /^NSpid:\s+(.*)$/m.exec(status)?.[1]?.split(/\s+/).length ?? 0;
}

async function namesIn(folder: string): Promise<string[]> {
  return (await readdir(folder).catch(absent)) ?? [];
}

function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT' || error.code === 'ESRCH') return null;
  throw error;
}
