// Metrics of the guest: a dozen reads from /proc and one statfs. Starts no process; only the
// process list grows with the tenant's load.
import { readdirSync, readFileSync, statfsSync, statSync } from 'node:fs';
import type { GuestMetrics } from '@berth/protocol/calls/metrics.ts';
import { nullOn } from '@berth/os/errors.ts';
import { onlineCpuCount } from './hotplug.ts';

const MIB = 2 ** 20;
/** Tick of the counters in /proc/stat: USER_HZ is 100 on every platform of Node on Linux. */
const MS_PER_TICK = 10;
/** kthreadd, the parent of the kernel's threads; absent in a container. */
const KERNEL_THREADS = '/proc/2';

export function readMetrics(): GuestMetrics {
  const [totalMib, availableMib] = memoryMib();
  const disk = statfsSync('/');
  const [networkInBytes, networkOutBytes] = networkBytes();
  return {
    uptimeSeconds: Number(words('/proc/uptime')[0]),
    vcpu: onlineCpuCount(),
    cpuBusyMs: cpuBusyMs(),
    load: words('/proc/loadavg').slice(0, 3).map(Number) as GuestMetrics['load'],
    memoryTotalMib: totalMib,
    memoryUsedMib: Math.max(0, totalMib - availableMib),
    diskTotalMib: (disk.blocks * disk.bsize) / MIB,
    diskUsedMib: ((disk.blocks - disk.bfree) * disk.bsize) / MIB,
    networkInBytes,
    networkOutBytes,
    processes: processCount(),
  };
}

function cpuBusyMs(): number {
  // cpu user nice system idle iowait irq softirq ...; `user` includes nested guests.
  const [, user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = words('/proc/stat', 10).map(Number);
  return (user + nice + system + irq + softirq) * MS_PER_TICK;
}

function memoryMib(): [total: number, available: number] {
  const text = readFileSync('/proc/meminfo', 'latin1');
  const kib = (name: string): number => Number(new RegExp(`^${name}: +(\\d+) kB$`, 'm').exec(text)?.[1] ?? 0);
  return [kib('MemTotal') / 1_024, kib('MemAvailable') / 1_024];
}

/** Hardware interfaces only: traffic of bridges and tunnels passes them, or stays in the guest. */
function networkBytes(): [received: number, sent: number] {
  let received = 0;
  let sent = 0;
  for (const line of readFileSync('/proc/net/dev', 'latin1').split('\n').slice(2)) {
    const [name = '', counters = ''] = line.split(':');
    if (counters === '' || statSync(`/sys/class/net/${name.trim()}/device`, { throwIfNoEntry: false }) === undefined)
      continue;

    const values = counters.trim().split(/ +/).map(Number);
    received += values[0] ?? 0;
    sent += values[8] ?? 0;
  }
  return [received, sent];
}

/** Excludes kernel threads. */
function processCount(): number {
  const all = readdirSync('/proc').filter((name) => name.charCodeAt(0) <= 57 && name.charCodeAt(0) >= 48).length;
  return Math.max(0, all - kernelThreadCount());
}

function kernelThreadCount(): number {
  const count = nullOn(['ENOENT'], () =>
    readFileSync(`${KERNEL_THREADS}/comm`, 'latin1') === 'kthreadd\n'
      ? 1 + words(`${KERNEL_THREADS}/task/2/children`).length
      : 0,
  );
  return count ?? 0;
}

/** Returns the first `limit` words of a file; without a limit, all. */
function words(path: string, limit?: number): string[] {
  return readFileSync(path, 'latin1').trim().split(/\s+/, limit);
}
