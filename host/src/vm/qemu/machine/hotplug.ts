// Hot-plug of single devices: adds vCPUs and memory modules, and requests their removal from the
// guest. resize.ts owns sizes and failures. The guest daemon brings devices online and verifies
// them.
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { DriverError } from '../../driver.ts';
import { MEMORY_SLOTS, MEMORY_STEP_MIB, VCPU_MAX } from '../../machine-size.ts';
import {
  cpuId,
  cpuNumber,
  isPluggedCpu,
  moduleMemory,
  readCpuPlaces,
  readModules,
  VCPU_THREAD_PREFIX,
  vcpuThread,
} from './plugged.ts';
import type { QmpSession } from './qmp.ts';

const MIB = 2 ** 20;
const GIB_IN_MIB = 1_024;
const UNPLUG_STEP_MS = 20;
const STOP_DEADLINE_MS = 30_000;
const RESUME_DEADLINE_MS = 10_000;
const REGION_BYTES = 2 * MIB;
/** A region with this much or less left counts as full. */
const REGION_RESERVE_BYTES = 4_096;

const runState = z.object({ status: z.string() });

const objects = z.array(z.object({ name: z.string(), type: z.string() })).max(1_024);

/** Adds this many vCPUs in the lowest free places. vCPUs added before a failure stay. */
export async function plugCpus(qmp: QmpSession, count: number, signal: AbortSignal): Promise<void> {
  if (count === 0) return;

  const places = await readCpuPlaces(qmp, signal);
  const free = places.filter((place) => place['qom-path'] === undefined).sort((a, b) => cpuNumber(a) - cpuNumber(b));
  if (free.length < count)
    throw new DriverError(`QEMU has room for ${free.length} more vCPUs; ${count} were requested`);

  const plug = async (beforeEach: (at: number) => Promise<void>): Promise<void> => {
    for (const [at, place] of free.slice(0, count).entries()) {
      await beforeEach(at);
      await qmp.command(
        'device_add',
        { driver: place.type, id: cpuId(cpuNumber(place)), ...place.props },
        z.unknown(),
        { signal },
      );
    }
  };
  const { enabled: kvm } = await qmp.command('query-kvm', undefined, z.object({ enabled: z.boolean() }), { signal });
  await (kvm ? plug(async () => {}) : plugEmulated(qmp, count, signal, plug));
}

/**
 * Guards the addition of emulated vCPUs, which can abort QEMU and so kill the tenant's VM. QEMU
 * aborts when more threads start than the VM's maximum vCPUs; removed vCPUs still count. It also
 * aborts when the translation buffer has no region left for the new thread. Threads are therefore
 * counted by marker objects inside QEMU, and regions are checked while the guest is paused.
 */
async function plugEmulated(
  qmp: QmpSession,
  count: number,
  signal: AbortSignal,
  plug: (beforeEach: (at: number) => Promise<void>) => Promise<void>,
): Promise<void> {
  const names = await qmp.command('qom-list', { path: '/objects' }, objects, { signal });
  const threads = 1 + names.filter(({ name }) => name.startsWith(VCPU_THREAD_PREFIX)).length;
  if (threads + count > VCPU_MAX)
    throw new DriverError(`an emulated VM with ${threads} vCPUs can get ${count} more only after a sleep`);

  const runs = (await qmp.command('query-status', undefined, runState, { signal })).status === 'running';
  if (runs) await qmp.command('stop', undefined, z.unknown(), { signal, deadlineMs: STOP_DEADLINE_MS });

  try {
    const text = await qmp.command('human-monitor-command', { 'command-line': 'info jit' }, z.string(), { signal });
    if (freeRegions(text, threads) < count)
      throw new DriverError('the emulator has no room for the code of another vCPU until the VM has slept');

    await plug(async (at) => void (await qmp.command('object-add', vcpuThread(threads + at), z.unknown(), { signal })));
  } finally {
    if (runs) await qmp.command('cont', undefined, z.unknown(), { signal: AbortSignal.timeout(RESUME_DEADLINE_MS) });
  }
}

/**
 * Minimum number of translation-buffer regions without a thread. The buffer has regions of 2 MiB,
 * at most eight per possible vCPU; each thread holds one that is not full. Pure; exported for its
 * test.
 */
export function freeRegions(infoJit: string, threads: number): number {
  const [, used, total] = /^gen code size +(\d{1,12})\/(\d{1,12})$/m.exec(infoJit) ?? [];
  const [usedBytes, totalBytes] = [Number(used ?? Number.NaN), Number(total ?? Number.NaN)];
  const regions = Math.min(Math.max(Math.round(totalBytes / REGION_BYTES), VCPU_MAX), 8 * VCPU_MAX);
  const full = Math.floor(usedBytes / (totalBytes / regions - REGION_RESERVE_BYTES));
  return Number.isFinite(full) ? regions - full - threads : 0;
}

/**
 * Requests removal of these vCPUs and waits up to the deadline. Resolves with the removed ones;
 * never rejects for a guest that refuses.
 */
export async function unplugCpus(
  qmp: QmpSession,
  numbers: readonly number[],
  deadlineMs: number,
  signal: AbortSignal,
): Promise<number[]> {
  const there = async (): Promise<number[]> => (await readCpuPlaces(qmp, signal)).filter(isPluggedCpu).map(cpuNumber);
  return waitForRelease(qmp, numbers, cpuId, there, deadlineMs, signal);
}

/**
 * Removes every vCPU but the first, right after a boot with all of them. Rejects with {@link
 * DriverError} if the guest refuses.
 */
export async function unplugAllCpus(qmp: QmpSession, deadlineMs: number, signal: AbortSignal): Promise<void> {
  const numbers = (await readCpuPlaces(qmp, signal)).filter(isPluggedCpu).map(cpuNumber);
  const gone = await unplugCpus(qmp, numbers, deadlineMs, signal);
  if (gone.length < numbers.length)
    throw new DriverError(`the guest did not release its vCPUs within ${deadlineMs / 1_000} s`);
}

/**
 * Sizes of the modules for an amount of memory: powers of two GiB, so that parts can be removed,
 * plus one module for the remainder below 1 GiB.
 */
export function moduleSizes(memoryMib: number): number[] {
  const sizes: number[] = [];
  for (let gib = 2 ** 20; gib >= 1; gib /= 2)
    if (Math.floor(memoryMib / GIB_IN_MIB) & gib) sizes.push(gib * GIB_IN_MIB);

  const rest = memoryMib % GIB_IN_MIB;
  if (rest % MEMORY_STEP_MIB !== 0)
    throw new RangeError(`memory comes in steps of ${MEMORY_STEP_MIB} MiB, not ${memoryMib}`);

  return rest === 0 ? sizes : [...sizes, rest];
}

/** Adds one module of each size. Modules added before a failure stay. */
export async function plugModules(qmp: QmpSession, sizesMib: readonly number[], signal: AbortSignal): Promise<void> {
  if (sizesMib.length === 0) return;

  const taken = new Set((await readModules(qmp, signal)).map(({ id }) => id));
  await dropUnusedMemory(qmp, taken, signal);
  for (const sizeMib of sizesMib) {
    const id = Array.from({ length: MEMORY_SLOTS }, (_, number) => `module${number}`).find((name) => !taken.has(name));
    if (id === undefined) throw new DriverError(`the VM has ${MEMORY_SLOTS} memory modules, the maximum`);

    taken.add(id);
    const memory = { 'qom-type': 'memory-backend-ram', id: moduleMemory(id), size: sizeMib * MIB };
    await qmp.command('object-add', memory, z.unknown(), { signal });
    await qmp.command('device_add', { driver: 'pc-dimm', id, memdev: moduleMemory(id) }, z.unknown(), { signal });
  }
}

/** As {@link unplugCpus}, for memory modules; returns their memory to the host. */
export async function unplugModules(
  qmp: QmpSession,
  ids: readonly string[],
  deadlineMs: number,
  signal: AbortSignal,
): Promise<string[]> {
  const there = async (): Promise<string[]> => (await readModules(qmp, signal)).map(({ id }) => id);
  const gone = await waitForRelease(qmp, ids, (id) => id, there, deadlineMs, signal);
  if (gone.length > 0) await dropUnusedMemory(qmp, new Set(await there()), signal);

  return gone;
}

/**
 * Frees memory objects without a module: the device did not fit, or the guest released it after the
 * deadline.
 */
async function dropUnusedMemory(qmp: QmpSession, used: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
  for (const { name } of await qmp.command('qom-list', { path: '/objects' }, objects, { signal })) {
    const module = /^(module\d{1,3})-memory$/.exec(name)?.[1];
    if (module !== undefined && !used.has(module))
      await qmp.command('object-del', { id: name }, z.unknown(), { signal });
  }
}

/**
 * A guest may refuse, ignore the request or be hostile, so only the remaining devices and the
 * deadline count.
 */
async function waitForRelease<T>(
  qmp: QmpSession,
  wanted: readonly T[],
  idOf: (device: T) => string,
  there: () => Promise<T[]>,
  deadlineMs: number,
  signal: AbortSignal,
): Promise<T[]> {
  const refused = new Set<string>();
  const unsubscribe = qmp.subscribe(({ name, data }) => {
    const id = data['device'];
    if (
      (name === 'DEVICE_UNPLUG_GUEST_ERROR' || name === 'MEM_UNPLUG_ERROR') &&
      typeof id === 'string' &&
      id.length <= 32
    )
      refused.add(id);
  });
  try {
    const deadline = performance.now() + deadlineMs;
    for (const device of wanted) await qmp.command('device_del', { id: idOf(device) }, z.unknown(), { signal });

    for (;;) {
      const left = new Set(await there());
      const waitedFor = wanted.filter((device) => left.has(device) && !refused.has(idOf(device)));
      if (waitedFor.length === 0 || performance.now() > deadline) return wanted.filter((device) => !left.has(device));

      await delay(UNPLUG_STEP_MS, undefined, { signal });
    }
  } finally {
    unsubscribe();
  }
}
