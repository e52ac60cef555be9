// Argv of an unprivileged service: bwrap exposes only the given folders, setpriv drops the
// privileges. Root makes the binds, so that a checkout or data folder under a 0700 home works.
// Starts nothing.
import { existsSync, realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import type { ServiceUser } from './service-user.ts';

export interface Bind {
  /** Absolute path outside the confinement. */
  from: string;
  /**
   * Path for the service. Use a top-level name: intermediate folders made by bwrap are closed to
   * other users.
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

/** File descriptor on which bwrap reports its child, as JSON with a `child-pid`. */
export const STATUS_FD = 3;

/** File descriptor from which bwrap reads the filter of service-filter.ts. */
export const FILTER_FD = 4;

/** System folders that every program needs, if present. */
const SYSTEM_FOLDERS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/etc'];

/**
 * Argv that runs a command confined. The caller passes pipes as fds {@link STATUS_FD} and
 * {@link FILTER_FD}, and the service's environment as the process's own: argv is visible to every
 * user of the host. The
 * service lives in a pid namespace whose first process is bwrap's: when the caller or the service
 * dies, the kernel ends everything inside. (A parent-death signal could not: bwrap keeps no
 * capability to signal another user's process.) SysV IPC is shared with the host: PostgreSQL
 * detects by it another server on its data.
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
    '--seccomp',
    String(FILTER_FD),
    ...view,
    '--',
  ];
  // A core file would contain the service's secrets.
  const limits = ['prlimit', '--core=0', '--'];
  return ['setpriv', ...outer, ...limits, 'setpriv', ...identity, ...rights, '--', ...confined.command];
}

/**
 * /etc/resolv.conf may point outside of /etc (systemd-resolved keeps it under /run); the folders on
 * its path must be open to the service.
 */
function resolverBind(): string[] {
  if (!existsSync('/etc/resolv.conf')) return [];

  const file = realpathSync('/etc/resolv.conf');
  if (SYSTEM_FOLDERS.some((folder) => file.startsWith(`${folder}/`))) return [];

  return [...openParents(file), '--ro-bind', file, file];
}

/**
 * Makes the parents of a path inside, open to the service: bwrap alone would make them for root
 * only. Existing ones are kept.
 */
function openParents(place: string): string[] {
  const parents: string[] = [];
  for (let folder = dirname(place); folder !== '/' && folder !== '/tmp'; folder = dirname(folder))
    parents.unshift('--perms', '0755', '--dir', folder);

  return parents;
}
