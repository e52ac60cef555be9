// Control groups (cgroup v2) of an instance: the services have a share of their own, so that busy
// VMs cannot starve them. The host daemon makes a group per VM below the other one.
//
//   PARENT/services/    supervisor, API, database, host daemon, gateways
//   PARENT/vms/         see host/src/vm/qemu/process/cgroups.ts
//
// PARENT is the group of the systemd unit if it was delegated, else a group of its own.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { hasCode, messageOf, nullOn } from '@berth/os/errors.ts';

const ROOT = '/sys/fs/cgroup';
/** `io` is absent from some kernels. */
const NEEDED = ['cpu', 'memory', 'pids'] as const;
const WANTED = [...NEEDED, 'io'] as const;
/** Under contention the services get three parts, and all VMs together one. */
const WEIGHTS = { services: 300, vms: 100 } as const;
/** Set by the systemd unit (`Delegate=yes`): the unit's group is Berth's to divide. */
const DELEGATED = 'BERTH_CGROUP_DELEGATED';

interface GroupsOptions {
  dataFolder: string;
  /** Memory of the services that the kernel reclaims last. */
  reserveMib: number;
  environment: Readonly<NodeJS.ProcessEnv>;
}

/** Groups that this process entered, or the reason why there are none. */
type InstanceGroups =
  | {
      /** Parent of the groups of VMs. */
      folder: string;
      /** Moves this process back, and removes the groups unless VMs run. */
      leave: () => void;
    }
  | { folder: null; reason: string };

/** Why this host cannot limit VMs; null if it can. Changes nothing. */
export function cgroupFault(root: string = ROOT): string | null {
  const controllers = nullOn(['ENOENT', 'ENOTDIR'], () => wordsOf(join(root, 'cgroup.controllers')));
  if (controllers === null) return 'no cgroup v2 in /sys/fs/cgroup';

  const missing = NEEDED.filter((name) => !controllers.includes(name));
  return missing.length === 0 ? null : `the kernel lacks the cgroup controllers ${missing.join(', ')}`;
}

/** Makes the groups, and moves this process to that of the services. Idempotent. */
export function enterGroups(options: GroupsOptions): InstanceGroups {
  const fault = cgroupFault();
  if (fault !== null) return { folder: null, reason: fault };

  const before = groupOfThis();
  const leave = (): void => {
    // A unit's group has no room for processes beside the groups in it; systemd removes it.
    if (isDelegated(options.environment)) return;
    // Its group may be gone, as that of an ended login session, or read-only, as in a container.
    nullOn(['ENOENT', 'ENODEV', 'EBUSY', 'EOPNOTSUPP', 'EACCES', 'EPERM', 'EROFS'], () =>
      writeFileSync(join(before, 'cgroup.procs'), String(process.pid), { flag: 'r+' }),
    );
    removeGroups(options.dataFolder);
  };
  try {
    return { folder: makeGroups(options), leave };
  } catch (error) {
    leave();
    return { folder: null, reason: messageOf(error) };
  }
}

function makeGroups({ dataFolder, reserveMib, environment }: GroupsOptions): string {
  const delegated = isDelegated(environment);
  const parent = delegated ? ownGroup() : separateGroup(dataFolder);
  const [services, vms] = [join(parent, 'services'), join(parent, 'vms')];
  mkdirSync(services, { recursive: true });
  // A group with controllers for its children has no processes itself.
  const moved = delegated ? wordsOf(join(parent, 'cgroup.procs')) : [];
  for (const pid of [...moved, String(process.pid)])
    nullOn(['ESRCH'], () => writeFileSync(join(services, 'cgroup.procs'), pid));

  if (!delegated) enableControllers(ROOT);
  enableControllers(parent);
  mkdirSync(vms, { recursive: true });
  enableControllers(vms);
  for (const [name, weight] of Object.entries(WEIGHTS)) writeFileSync(join(parent, name, 'cpu.weight'), String(weight));
  // Protection holds only as far as the parent has it too.
  for (const group of [parent, services]) writeFileSync(join(group, 'memory.low'), String(reserveMib * 2 ** 20));
  return vms;
}

/** Removes the groups of a stopped instance; those with running VMs stay. */
export function removeGroups(dataFolder: string): void {
  const parent = separateGroup(dataFolder);
  if (!existsSync(parent)) return;

  for (const group of [join(parent, 'vms'), join(parent, 'services'), parent])
    nullOn(['EBUSY', 'ENOENT'], () => rmdirSync(group));
}

function separateGroup(dataFolder: string): string {
  return join(ROOT, `berth-${createHash('sha256').update(dataFolder).digest('hex').slice(0, 8)}`);
}

function isDelegated(environment: Readonly<NodeJS.ProcessEnv>): boolean {
  return environment[DELEGATED] === '1';
}

function groupOfThis(): string {
  return join(ROOT, /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'latin1'))?.[1] ?? '/');
}

/** The group that systemd made, also if this process was moved below it before. */
function ownGroup(): string {
  const group = groupOfThis();
  return basename(group) === 'services' ? dirname(group) : group;
}

function enableControllers(group: string): void {
  for (const name of WANTED) {
    try {
      writeFileSync(join(group, 'cgroup.subtree_control'), `+${name}`);
    } catch (error) {
      if (name !== 'io' || !hasCode(error, 'ENOENT', 'EINVAL')) throw error;
    }
  }
}

function wordsOf(file: string): string[] {
  return readFileSync(file, 'latin1').split(/\s+/).filter(Boolean);
}
