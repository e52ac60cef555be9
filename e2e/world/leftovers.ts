// Finds what a Berth has on the host besides its data folder: registry entries, namespaces, veths,
// processes of slot uids, VM folders. Reads only the kernel and the disk, never the service, so
// that it works after everything was killed.
import { readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { DEFAULT_REGISTRY_FOLDER, readRegistry, type SlotEntry } from '@berth/host/network/slots/registry.ts';
import {
  END_OF_SLOT_UIDS,
  FIRST_SLOT_UID,
  HOST_VETH_PREFIX,
  NAMESPACE_PREFIX,
} from '@berth/host/network/slots/slot.ts';
import { nullIf } from '@berth/os/errors.ts';

const absent = nullIf('ENOENT', 'ENOTDIR', 'ESRCH');

type Entry = SlotEntry & { number: number };

/**
 * Everything that belongs to the data folder's instance or to none: a registry entry; a namespace,
 * veth or process whose slot has no entry; a VM's folder; a pool VM. Empty when all is gone. Other
 * instances on the host are not counted. A running host daemon keeps idle slots and VMs ahead of
 * time; `idle: false` excludes them.
 */
export async function leftoversOf(dataFolder: string, { idle = true } = {}): Promise<string[]> {
  const [entries, folders, pool, ownerless] = await Promise.all([
    registryEntries(),
    namesIn(join(dataFolder, 'host', 'vms')),
    namesIn(join(dataFolder, 'host', 'pool')),
    unrecordedSlots(),
  ]);
  // Another instance's short-lived slot is absent from the next scan; leftovers persist.
  const stays = ownerless.length === 0 ? [] : await unrecordedSlots();
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
 * Namespaces, veths and processes of slots without an entry before or after this scan: an entry
 * exists from before them until they are gone.
 */
async function unrecordedSlots(): Promise<string[]> {
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
 * Ids of VMs that hold a slot of the data folder's instance. A VM claimed from the pool counts
 * under the VM id whose record names it; without such a record, under its own id, unless it still
 * belongs to the pool.
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

/** Processes with the uid of the VM's slot: its QEMU. */
export async function processesOfVm(vmId: string): Promise<number[]> {
  const slots = new Set<number>();
  for (const { number, dataFolder, vmId: holder } of await registryEntries())
    if (holder !== null && (holder === vmId || (await machineIdOf(dataFolder, vmId)) === holder)) slots.add(number);

  return (await slotProcesses()).filter(({ slot }) => slots.has(slot)).map(({ pid }) => pid);
}

/** Processes of every VM of the data folder's instance, including waiting pool VMs. */
export async function processesOfInstance(dataFolder: string): Promise<number[]> {
  const slots = new Set(
    (await registryEntries()).filter((entry) => entry.dataFolder === dataFolder).map(({ number }) => number),
  );
  return (await slotProcesses()).filter(({ slot }) => slots.has(slot)).map(({ pid }) => pid);
}

/** VM ids by the pool id of their VM. */
async function claimedMachines(dataFolder: string): Promise<Map<string, string>> {
  const claimed = new Map<string, string>();
  for (const vmId of await namesIn(join(dataFolder, 'host', 'vms'))) {
    const machineId = await machineIdOf(dataFolder, vmId);
    if (machineId !== null) claimed.set(machineId, vmId);
  }
  return claimed;
}

/** The pool id of the VM, if it has one. */
export async function machineIdOf(dataFolder: string, vmId: string): Promise<string | null> {
  const text = await readFile(join(dataFolder, 'host', 'vms', vmId, 'record.json'), 'utf8').catch(absent);
  return text === null ? null : ((JSON.parse(text) as { machineId?: string | null }).machineId ?? null);
}

async function registryEntries(): Promise<Entry[]> {
  return [...(await readRegistry(DEFAULT_REGISTRY_FOLDER))].map(([number, entry]) => ({ number, ...entry }));
}

/**
 * Processes under slot uids whose jail's PID namespace is a direct child of ours. Excludes the
 * private hosts of other tests. Their jails lie deeper. An unjailed process there is in a namespace
 * whose first process is neither a slot's nor the jail's (bwrap, where QEMU is not the first).
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

/** Depth of the PID namespaces of a process; the first counts as 1. */
function spacesOf(status: string): number {
  return /^NSpid:\s+(.*)$/m.exec(status)?.[1]?.split(/\s+/).length ?? 0;
}

/**
 * Interfaces of this process's network namespace. /sys shows those of the namespace that mounted
 * it, which differs for a test on a private host.
 */
async function interfaces(): Promise<string[]> {
  const lines = (await readFile('/proc/self/net/dev', 'utf8')).split('\n');
  return lines.flatMap((line) => /^\s*([^\s:]+):/.exec(line)?.[1] ?? []);
}

async function namesIn(folder: string): Promise<string[]> {
  return (await readdir(folder).catch(absent)) ?? [];
}
