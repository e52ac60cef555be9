// CPU time of an installation outside its guests, by part: a control group each for API, database
// and host daemon counts all their processes, also short-lived ones. The host daemon's group
// includes QEMU; the time of its vCPU threads is subtracted.
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { CpuGroup } from '../../machine/src/tests/cpu-group.ts';
import { instancePaths, readInstanceRecord } from '@berth/machine/supervisor/instance.ts';
import { familyOf, threadTimes, type ThreadTimes } from './threads.ts';

/** A QEMU that ends has run for at most this long since its last sample. */
const SAMPLE_MS = 2;
const QEMU = /^qemu-system/;

/** CPU milliseconds. */
export interface PartTimes {
  api: number;
  database: number;
  hostDaemon: number;
  /** The processes without privileges beside it: guest gateway and model gateway. */
  gateways: number;
  /** Threads of QEMU that do not run the guest. */
  qemu: number;
  /** Short-lived programs, and the start and end of QEMU. */
  programs: number;
}

export const PARTS = [
  'api',
  'database',
  'hostDaemon',
  'gateways',
  'qemu',
  'programs',
] as const satisfies readonly (keyof PartTimes)[];

const SERVICES = ['api', 'database', 'host'] as const;

/** CPU times at one moment. */
interface Reading {
  services: Record<(typeof SERVICES)[number], number>;
  daemon: number;
  gateways: number;
  qemus: Map<number, ThreadTimes>;
}

export class Accounts {
  readonly #parent: CpuGroup;
  readonly #groups: Record<(typeof SERVICES)[number], CpuGroup>;
  /** Groups of VMs, which QEMU enters; null: it stays in that of the host daemon. */
  readonly #vms: CpuGroup | null;
  readonly #daemon: number;
  readonly #gateways: readonly number[];

  private constructor(
    parent: CpuGroup,
    groups: Record<(typeof SERVICES)[number], CpuGroup>,
    vms: CpuGroup | null,
    daemon: number,
    gateways: readonly number[],
  ) {
    this.#parent = parent;
    this.#groups = groups;
    this.#vms = vms;
    this.#daemon = daemon;
    this.#gateways = gateways;
  }

  /** Moves the running services of the data folder into groups. Call before any VM runs. */
  static async open(dataFolder: string): Promise<Accounts> {
    const services = (await readInstanceRecord(instancePaths(dataFolder)))?.services ?? {};
    const parent = await CpuGroup.make(`berth-work-${process.pid}`);
    const enter = async (name: (typeof SERVICES)[number]): Promise<CpuGroup> => {
      const root = services[name];
      if (root === undefined) throw new Error(`the installation has no service '${name}'`);
      const group = await parent.makeChild(name);
      for (const pid of familyOf(root.pid).keys()) await group.add(pid);
      return group;
    };
    const groups = { api: await enter('api'), database: await enter('database'), host: await enter('host') };
    const daemon = services['host']?.pid ?? 0;
    const below = [...familyOf(daemon)].filter(([pid, name]) => pid !== daemon && !QEMU.test(name));
    return new Accounts(
      parent,
      groups,
      vmGroups(daemon),
      daemon,
      below.map(([pid]) => pid),
    );
  }

  /** CPU time outside the guests while `act` runs, and its result. */
  async during<T>(act: () => Promise<T>): Promise<{ times: PartTimes; result: T }> {
    const before = await this.#read();
    // The last known times of QEMUs that end meanwhile.
    const last = new Map(before.qemus);
    const done = new AbortController();
    const sampling = this.#sample(last, done.signal);
    let result: T;
    try {
      result = await act();
    } finally {
      done.abort();
      await sampling;
    }
    const after = await this.#read();
    for (const [pid, times] of after.qemus) last.set(pid, times);
    let [qemu, vcpu] = [0, 0];
    for (const [pid, times] of last) {
      const from = before.qemus.get(pid) ?? { vcpuMs: 0, otherMs: 0 };
      qemu += times.otherMs - from.otherMs;
      vcpu += times.vcpuMs - from.vcpuMs;
    }
    const hostDaemon = after.daemon - before.daemon;
    const gateways = after.gateways - before.gateways;
    const host = after.services.host - before.services.host;
    const times = {
      api: after.services.api - before.services.api,
      database: after.services.database - before.services.database,
      hostDaemon,
      gateways,
      qemu,
      programs: host - hostDaemon - gateways - qemu - vcpu,
    };
    return { times, result };
  }

  /** Call after the processes have exited. */
  async remove(): Promise<void> {
    for (const group of [...Object.values(this.#groups), this.#parent]) await group.remove();
  }

  async #read(): Promise<Reading> {
    const { api, database, host } = this.#groups;
    const services = {
      api: await api.milliseconds(),
      database: await database.milliseconds(),
      host: (await host.milliseconds()) + ((await this.#vms?.milliseconds()) ?? 0),
    };
    const qemus = new Map<number, ThreadTimes>();
    for (const [pid, name] of familyOf(this.#daemon)) {
      const times = QEMU.test(name) ? threadTimes(pid) : null;
      if (times !== null) qemus.set(pid, times);
    }
    return { services, daemon: timeOf([this.#daemon]), gateways: timeOf(this.#gateways), qemus };
  }

  async #sample(known: Map<number, ThreadTimes>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      for (const pid of known.keys()) {
        const times = threadTimes(pid);
        // An ending process has fewer threads, and no vCPU.
        if (times !== null && times.vcpuMs > 0) known.set(pid, times);
      }
      await delay(SAMPLE_MS);
    }
  }
}

/** CPU milliseconds of the living threads of these processes. */
function timeOf(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + (threadTimes(pid)?.otherMs ?? 0), 0);
}

/** By the daemon's flag. */
function vmGroups(daemon: number): CpuGroup | null {
  const words = readFileSync(`/proc/${daemon}/cmdline`, 'utf8').split('\0');
  const folder = words[words.indexOf('--vm-cgroup') + 1] ?? '';
  return folder.startsWith('/') ? CpuGroup.at(folder) : null;
}
