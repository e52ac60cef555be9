// How a service that needs no privileges is started: bwrap shows it only the folders it is given,
// setpriv takes the privileges away. Root makes the binds, so that a checkout or a data folder
// under a 0700 home works. Owns the argv; starts nothing.
import { existsSync, realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import type { ServiceUser } from './service-user.ts';

export interface Bind {
  /** Absolute path on the machine. */
  from: string;
  /**
   * Where the service sees it. A top-level name: bwrap's own in-between folders are closed to other
   * users.
   */
  to: string;
  writable?: boolean;
}

export interface Confined {
  user: ServiceUser;
  binds: readonly Bind[];
  command: readonly [string, ...string[]];
  environment: Readonly<Record<string, string>>;
  workingFolder: string;
}

/** File descriptor on which bwrap reports what it started, as JSON with a `child-pid`. */
export const STATUS_FD = 3;

/** Folders of the machine that every program needs, when they are there. */
const SYSTEM_FOLDERS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/etc'];

/**
 * The argv that runs a command confined. The starter gives it a pipe as fd {@link STATUS_FD}, and
 * the service's environment as its own: what stands in an argv, everyone on the machine can read.
 * The service lives in a pid namespace whose first process is bwrap's own: when the starter or the
 * service dies, the kernel ends all that is left inside. (A parent-death signal could not do that:
 * bwrap keeps no capability to signal a process of another user.) SysV IPC stays the machine's:
 * PostgreSQL tells by it that another server uses its data.
 */
export function confinedArgv(confined: Confined): [string, ...string[]] {
  const { user } = confined;
  const system = SYSTEM_FOLDERS.filter((folder) => existsSync(folder)).flatMap((folder) => [
    '--ro-bind',
    folder,
    folder,
  ]);
  const binds = confined.binds.flatMap((bind) => [
    ...openParents(bind.to),
    bind.writable === true ? '--bind' : '--ro-bind',
    bind.from,
    bind.to,
  ]);
  const namespaces = ['--die-with-parent', '--unshare-pid', '--unshare-uts', '--unshare-cgroup-try', '--new-session'];
  const ownFolders = [
    '--proc',
    '/proc',
    '--dev',
    '/dev',
    '--tmpfs',
    '/tmp',
    '--chmod',
    '1777',
    '/tmp',
    '--chmod',
    '1777',
    '/dev/shm',
  ];
  const view = [...system, ...resolverBind(), ...ownFolders, ...binds, '--chdir', confined.workingFolder];
  const identity = ['--reuid', String(user.uid), '--regid', String(user.gid), '--clear-groups'];
  const rights = ['--bounding-set', '-all', '--inh-caps', '-all', '--no-new-privs'];
  const outer = [
    '--pdeathsig',
    'KILL',
    '--',
    'bwrap',
    ...namespaces,
    '--json-status-fd',
    String(STATUS_FD),
    ...view,
    '--',
  ];
  return ['setpriv', ...outer, 'setpriv', ...identity, ...rights, '--', ...confined.command];
}

/**
 * /etc/resolv.conf may lead out of /etc (systemd-resolved keeps it under /run); the folders on the
 * way must be open to the service.
 */
function resolverBind(): string[] {
  if (!existsSync('/etc/resolv.conf')) return [];

  const file = realpathSync('/etc/resolv.conf');
  if (SYSTEM_FOLDERS.some((folder) => file.startsWith(`${folder}/`))) return [];

  return [...openParents(file), '--ro-bind', file, file];
}

/**
 * Makes the folders above a place in the view, open to the service: bwrap alone would make them for
 * root only. What is there stays as it is.
 */
function openParents(place: string): string[] {
  const parents: string[] = [];
  for (let folder = dirname(place); folder !== '/' && folder !== '/tmp'; folder = dirname(folder))
    parents.unshift('--perms', '0755', '--dir', folder);

  return parents;
}
