// Brings hot-plugged resources into use: vCPUs and memory blocks through sysfs, the disk by growing
// the root file system. Reads back the kernel's values, which are the basis of billing and trust.
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { hasCode } from '@berth/os/errors.ts';

const CPU_FOLDER = '/sys/devices/system/cpu';
const MEMORY_FOLDER = '/sys/devices/system/memory';
const PAGE_BYTES = 4_096;
const MIB = 2 ** 20;
const GIB = 2 ** 30;
const POLL_MS = 10;
const RESIZE_DEADLINE_MS = 60_000;

const run = promisify(execFile);

/**
 * Waits until exactly `vcpu` vCPUs are online. Brings up plugged ones, and takes the last ones
 * offline when there are more, before the host unplugs them. Rejects when the signal aborts first.
 */
export async function onlineCpus(vcpu: number, signal: AbortSignal): Promise<void> {
  await until(
    signal,
    () => `${onlineCpuCount()} vCPUs are online instead of ${vcpu}`,
    () => {
      let excess = onlineCpuCount() - vcpu;
      if (excess === 0) return true;

      const numbers = readdirSync(CPU_FOLDER)
        .filter((name) => /^cpu\d+$/.test(name))
        .map((name) => Number(name.slice(3)));
      numbers.sort((a, b) => (excess > 0 ? b - a : a - b));
      for (const number of numbers) {
        if (excess !== 0 && changeLock(`${CPU_FOLDER}/cpu${number}/online`, excess > 0 ? ['1', '0'] : ['0', '1']))
          excess -= Math.sign(excess);
      }
      return onlineCpuCount() === vcpu;
    },
  );
}

/**
 * Brings every present memory block online, until at least `memoryMib` are. Resolves with the
 * online MiB. Rejects when the signal aborts first.
 */
export async function onlineMemory(memoryMib: number, signal: AbortSignal): Promise<number> {
  let onlineMib = 0;
  await until(
    signal,
    () => `${onlineMib} MiB of memory are online instead of ${memoryMib}`,
    () => {
      onlineMib = onlineMemoryMib();
      if (onlineMib < memoryMib) {
        // The kernel onlines blocks as they are plugged in; this retries blocks that failed then.
        for (const block of memoryBlocks())
          changeLock(`${MEMORY_FOLDER}/${block}/state`, ['offline', 'online_movable']);

        onlineMib = onlineMemoryMib();
      }
      return onlineMib >= memoryMib;
    },
  );
  return onlineMib;
}

/** Grows the root file system to the size of the disk. Rejects when the signal aborts first. */
export async function growRoot(diskGib: number, signal: AbortSignal): Promise<void> {
  const wanted = diskGib * GIB;
  const device = rootDevice();
  await until(
    signal,
    () => `the root disk has ${device.bytes() / GIB} GiB instead of ${diskGib}`,
    () => device.bytes() >= wanted,
  );
  // File system metadata makes its size slightly smaller than the disk.
  if (rootBytes() < wanted * 0.95)
    await run('resize2fs', [device.path], { signal, timeout: RESIZE_DEADLINE_MS, killSignal: 'SIGKILL' });

  if (rootBytes() < wanted * 0.95)
    throw new Error(`the root file system has ${rootBytes() / GIB} GiB after being grown to ${diskGib}`);
}

export function onlineCpuCount(): number {
  let count = 0;
  for (const range of readFileSync(`${CPU_FOLDER}/online`, 'latin1').trim().split(',')) {
    const [first = 0, last = first] = range.split('-').map(Number);
    count += last - first + 1;
  }
  return count;
}

/** A single read. Rounds up to whole blocks: the firmware keeps part of the first block. */
export function onlineMemoryMib(): number {
  const blockBytes = Number.parseInt(readFileSync(`${MEMORY_FOLDER}/block_size_bytes`, 'latin1'), 16);
  let pages = 0;
  for (const [, present] of readFileSync('/proc/zoneinfo', 'latin1').matchAll(/^ +present +(\d+)$/gm))
    pages += Number(present);

  return (Math.ceil((pages * PAGE_BYTES) / blockBytes) * blockBytes) / MIB;
}

/** Size of the disk below the root file system. */
export function rootDiskGib(): number {
  return rootDevice().bytes() / GIB;
}

function memoryBlocks(): string[] {
  return readdirSync(MEMORY_FOLDER).filter((name) => /^memory\d+$/.test(name));
}

function rootBytes(): number {
  const { blocks, bsize } = statfsSync('/');
  return blocks * bsize;
}

function rootDevice(): { path: string; bytes: () => number } {
  const { dev } = statSync('/');
  // Linux's encoding of device numbers: 12 bits major, 20 bits minor with its low byte first.
  const major = (dev >> 8) & 0xfff;
  const minor = (dev & 0xff) | ((dev >> 12) & 0xfff00);
  const folder = `/sys/dev/block/${major}:${minor}`;
  return {
    path: `/dev/${basename(readlinkSync(folder))}`,
    bytes: () => Number(readFileSync(`${folder}/size`, 'latin1')) * 512,
  };
}

/**
 * Writes `to` to a sysfs file that contains `from`; returns true if it did. A unit that refuses or
 * disappears shows in the count that the caller polls.
 */
function changeLock(path: string, [from, to]: readonly [string, string]): boolean {
  try {
    if (readFileSync(path, 'latin1').trim() !== from) return false;

    writeFileSync(path, to);
    return true;
  } catch (error) {
    // The first CPU has no such file.
    if (!hasCode(error, 'ENOENT')) console.error(`${path} did not take ${to}:`, error);

    return false;
  }
}

async function until(signal: AbortSignal, state: () => string, done: () => boolean): Promise<void> {
  while (!done()) {
    if (signal.aborted) throw new Error(state(), { cause: signal.reason });

    await delay(POLL_MS);
  }
}
