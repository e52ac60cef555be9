// What a Berth has on the machine beside its data folder, found from the outside: registry entries,
// namespaces, veths, processes of slot uids, VM folders. Reads the kernel and the disk only, never
// the service, so that it also tells after everything was killed.
import { readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { DEFAULT_REGISTRY_FOLDER, readRegistry, type SlotEntry } from '@berth/host/network/slots/registry.ts';
import {
  END_OF_SLOT_UIDS,
  FIRST_SLOT_UID,
  HOST_VETH_PREFIX,
  NAMESPACE_PREFIX,
} from '@berth/host/network/slots/slot.ts';

type Entry = SlotEntry & { number: number };

/**
 * Everything that belongs to the data folder's instance or to nobody: an entry in the registry, a
 * namespace, veth or process whose slot no entry names, a VM's folder, a machine of the pool. Empty
 * when all is gone. Other instances on the machine are not counted. A running host daemon keeps
 * idle slots and machines without a tenant ahead of time; `idle: false` leaves those out.
 */
export async function leftoversOf(dataFolder: string, { idle = true } = {}): Promise<string[]> {
  const [entries, folders, pool, ownerless] = await Promise.all([
    registryEntries(),
    namesIn(join(dataFolder, 'host', 'vms')),
    namesIn(join(dataFolder, 'host', 'pool')),
    namedByNoEntry(),
  ]);
  // What is left stays. What another instance makes and frees in the time of one look is not there
  // in the next.
  const stays = ownerless.length === 0 ? [] : await namedByNoEntry();
  return [
    ...entries
      .filter(
        (entry) => entry.dataFolder === dataFolder && (idle || (entry.vmId !== null && !pool.includes(entry.vmId))),
      )
      .map((entry) => `slot ${entry.number}${entry.vmId === null ? '' : ` of ${entry.vmId}`}`),
    ...ownerless.filter((what) => stays.includes(what)),
    ...folders.map((name) => `folder host/vms/${name}`),
    ...(idle ? pool.map((name) => `folder host/pool/${name}`) : []),
  ];
}

/**
 * Namespaces, veths and processes of slots that no instance had before this look, nor has after it:
 * an entry stands from before them until they are gone.
 */
async function namedByNoEntry(): Promise<string[]> {
  const before = await registryEntries();
  const [namespaces, veths, processes] = await Promise.all([namesIn('/run/netns'), interfaces(), slotProcesses()]);
  const known = new Set([...before, ...(await registryEntries())].map((entry) => entry.number));
  const unknown = (name: string, prefix: string): boolean => {
    const number = name.startsWith(prefix) ? name.slice(prefix.length) : '';
    return /^\d+$/.test(number) && !known.has(Number(number));
  };
  return [
    ...namespaces.filter((name) => unknown(name, NAMESPACE_PREFIX)).map((name) => `namespace ${name}`),
    ...veths.filter((name) => unknown(name, HOST_VETH_PREFIX)).map((name) => `veth ${name}`),
    ...processes.filter(({ slot }) => !known.has(slot)).map(({ pid, slot }) => `process ${pid} of slot ${slot}`),
  ];
}

/**
 * Ids of the VMs that hold a slot of the data folder's instance. A machine that was claimed from
 * the pool counts as the VM's whose record names it; one that no record names goes by its own id,
 * unless it is the pool's still.
 */
export async function vmsWithSlots(dataFolder: string): Promise<string[]> {
  const [entries, claimed, pool] = await Promise.all([
    registryEntries(),
    claimedMachines(dataFolder),
    namesIn(join(dataFolder, 'host', 'pool')),
  ]);
  return entries
    .filter((entry) => entry.dataFolder === dataFolder)
    .flatMap(({ vmId }) =>
      vmId === null || (pool.includes(vmId) && !claimed.has(vmId)) ? [] : [claimed.get(vmId) ?? vmId],
    );
}

/** Processes that run as the uid of the slot that the VM has claimed: its QEMU. */
export async function processesOfVm(vmId: string): Promise<number[]> {
  const slots = new Set<number>();
  for (const { number, dataFolder, vmId: holder } of await registryEntries())
    if (holder !== null && (holder === vmId || (await machineIdOf(dataFolder, vmId)) === holder)) slots.add(number);

  return (await slotProcesses()).filter(({ slot }) => slots.has(slot)).map(({ pid }) => pid);
}

/**
 * Processes of every machine of the data folder's instance, also of those that wait for a tenant.
 */
export async function processesOfInstance(dataFolder: string): Promise<number[]> {
  const slots = new Set(
    (await registryEntries()).filter((entry) => entry.dataFolder === dataFolder).map(({ number }) => number),
  );
  return (await slotProcesses()).filter(({ slot }) => slots.has(slot)).map(({ pid }) => pid);
}

/** Ids of VMs by the id that their machine had in the pool. */
async function claimedMachines(dataFolder: string): Promise<Map<string, string>> {
  const claimed = new Map<string, string>();
  for (const vmId of await namesIn(join(dataFolder, 'host', 'vms'))) {
    const machineId = await machineIdOf(dataFolder, vmId);
    if (machineId !== null) claimed.set(machineId, vmId);
  }
  return claimed;
}

/** The id that the VM's machine goes by, where that is not the VM's. */
export async function machineIdOf(dataFolder: string, vmId: string): Promise<string | null> {
  const text = await readFile(join(dataFolder, 'host', 'vms', vmId, 'record.json'), 'utf8').catch(absent);
  return text === null ? null : ((JSON.parse(text) as { machineId?: string | null }).machineId ?? null);
}

async function registryEntries(): Promise<Entry[]> {
  return [...(await readRegistry(DEFAULT_REGISTRY_FOLDER))].map(([number, entry]) => ({ number, ...entry }));
}

/**
 * Processes under slot uids, whose jail's process space lies right under ours. Not those of a
 * machine that another test plays: its jails lie deeper, and what runs in it without a jail is in a
 * space that begins neither with a process of a slot nor with the jail's own (bwrap, where QEMU is
 * not the first).
 */
async function slotProcesses(): Promise<{ pid: number; slot: number }[]> {
  const spacesHere = spacesOf(await readFile('/proc/self/status', 'utf8'));
  const found: { pid: number; slot: number; space: string | null }[] = [];
  const played = new Set<string | null>();
  for (const name of await namesIn('/proc')) {
    const status = /^\d+$/.test(name) ? await readFile(`/proc/${name}/status`, 'utf8').catch(absent) : null;
    if (status === null || /^State:\s+Z/m.test(status) || spacesOf(status) !== spacesHere + 1) continue;
    const space = await readlink(`/proc/${name}/ns/pid`).catch(absent);
    const slot = Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]) - FIRST_SLOT_UID;
    if (slot >= 0 && slot < END_OF_SLOT_UIDS - FIRST_SLOT_UID) found.push({ pid: Number(name), slot, space });
    else if (/^NSpid:.*\s1$/m.test(status) && !/^Name:\s+bwrap$/m.test(status)) played.add(space);
  }
  return found.filter(({ space }) => space === null || !played.has(space));
}

/** Depth of the process spaces around a process, with the first one counted as 1. */
function spacesOf(status: string): number {
  return /^NSpid:\s+(.*)$/m.exec(status)?.[1]?.split(/\s+/).length ?? 0;
}

/**
 * Those of this process's own network: /sys shows those of whoever mounted it, which for a test in
 * a private machine is another one.
 */
async function interfaces(): Promise<string[]> {
  const lines = (await readFile('/proc/self/net/dev', 'utf8')).split('\n');
  return lines.flatMap((line) => /^\s*([^\s:]+):/.exec(line)?.[1] ?? []);
}

async function namesIn(folder: string): Promise<string[]> {
  return (await readdir(folder).catch(absent)) ?? [];
}

function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR' || error.code === 'ESRCH') return null;
  throw error;
}
