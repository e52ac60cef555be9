// Makes what the host plugged in usable: vCPUs and memory blocks through sysfs, the disk by growing the root file system. Reads back what
// the kernel then has, which is what the machine is billed and trusted for.
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

const CPU_FOLDER = '/sys/devices/system/cpu';
const MEMORY_FOLDER = '/sys/devices/system/memory';
const MIB = 2 ** 20;
const GIB = 2 ** 30;
const POLL_MS = 10;
const RESIZE_DEADLINE_MS = 60_000;

const run = promisify(execFile);

/** Brings every present vCPU online, until exactly `vcpu` are. Rejects when the signal aborts first. */
export async function onlineCpus(vcpu: number, signal: AbortSignal): Promise<void> {
  await until(
    signal,
    () => `${onlineCpuCount()} vCPUs are online instead of ${vcpu}`,
    () => {
      if (onlineCpuCount() < vcpu) {
        for (const name of readdirSync(CPU_FOLDER)) {
          if (/^cpu\d+$/.test(name)) {
            switchOn(`${CPU_FOLDER}/${name}/online`, '0', '1');
          }
        }
      }
      return onlineCpuCount() === vcpu;
    },
  );
}

/** Brings every present memory block online, until exactly `memoryMib` are. Rejects when the signal aborts first. */
export async function onlineMemory(memoryMib: number, signal: AbortSignal): Promise<void> {
  await until(
    signal,
    () => `${onlineMemoryMib()} MiB of memory are online instead of ${memoryMib}`,
    () => {
      if (onlineMemoryMib() < memoryMib) {
        for (const block of memoryBlocks()) {
          // Movable memory can be taken away again.
          switchOn(`${MEMORY_FOLDER}/${block}/state`, 'offline', 'online_movable');
        }
      }
      return onlineMemoryMib() === memoryMib;
    },
  );
}

/** Grows the root file system when it is smaller than the disk is to be. Rejects when the signal aborts first. */
export async function growRoot(diskGib: number, signal: AbortSignal): Promise<void> {
  const wanted = diskGib * GIB;
  const device = rootDevice();
  await until(
    signal,
    () => `the root disk has ${device.bytes() / GIB} GiB instead of ${diskGib}`,
    () => device.bytes() >= wanted,
  );
  // Without its own tables, the file system reports somewhat less than the disk has.
  if (rootBytes() < wanted * 0.95) {
    await run('resize2fs', [device.path], { signal, timeout: RESIZE_DEADLINE_MS, killSignal: 'SIGKILL' });
  }
  if (rootBytes() < wanted * 0.95) {
    throw new Error(`the root file system has ${rootBytes() / GIB} GiB after being grown to ${diskGib}`);
  }
}

export function onlineCpuCount(): number {
  let count = 0;
  for (const range of readFileSync(`${CPU_FOLDER}/online`, 'latin1').trim().split(',')) {
    const [first = 0, last = first] = range.split('-').map(Number);
    count += last - first + 1;
  }
  return count;
}

export function onlineMemoryMib(): number {
  const blockBytes = Number.parseInt(readFileSync(`${MEMORY_FOLDER}/block_size_bytes`, 'latin1'), 16);
  const online = memoryBlocks().filter((block) => readFileSync(`${MEMORY_FOLDER}/${block}/state`, 'latin1').trim() === 'online');
  return (online.length * blockBytes) / MIB;
}

/** Size of the disk that the root file system fills. */
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
  // Linux's encoding of device numbers: twelve bits of major, twenty of minor with its low byte first.
  const major = (dev >> 8) & 0xfff;
  const minor = (dev & 0xff) | ((dev >> 12) & 0xfff00);
  const folder = `/sys/dev/block/${major}:${minor}`;
  return {
    path: `/dev/${basename(readlinkSync(folder))}`,
    bytes: () => Number(readFileSync(`${folder}/size`, 'latin1')) * 512,
  };
}

/** Writes `on` to a sysfs file that says `off`. A unit that refuses, or goes away meanwhile, shows in the count that is waited for. */
function switchOn(path: string, off: string, on: string): void {
  try {
    if (readFileSync(path, 'latin1').trim() === off) {
      writeFileSync(path, on);
    }
  } catch (error) {
    // The first CPU has no such file.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
      console.error(`${path} was not switched on:`, error);
    }
  }
}

async function until(signal: AbortSignal, state: () => string, done: () => boolean): Promise<void> {
  while (!done()) {
    if (signal.aborted) {
      throw new Error(state(), { cause: signal.reason });
    }
    await delay(POLL_MS);
  }
}
