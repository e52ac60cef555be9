// Command line that runs the guest daemon as a local process: bwrap with separate pid, IPC and
// hostname namespaces and files, under an unprivileged uid. Shares the host's network and isolates
// nothing that matters: for tests only.
import { chown, mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { GUEST_NODE_FLAGS } from '@berth/guest/bundle.ts';

/** Dedicated uid of all fake VMs when run as root. */
const FAKE_UID = 65_999;
/** Variable in bwrap's arguments that identifies its processes. */
export const MARKER_NAME = 'BERTH_FAKE_VM';

export interface Jail {
  folder: string;
  portFile: string;
  /** File to which bwrap writes the pid of the first process inside. */
  infoFile: string;
  logFile: string;
  argv: string[];
}

/** Coding agents of the host that fake VMs show: the list, as an image has it, and its programs. */
export interface FakeAgents {
  list: string;
  programs: readonly string[];
}

/**
 * Fills the VM's unused folder and returns the command to run. bwrap's fd 3 must be the info file.
 */
export async function makeJail(
  folder: string,
  marker: string,
  guestDaemon: Uint8Array,
  agents: FakeAgents | null,
): Promise<Jail> {
  const privileged = process.getuid?.() === 0;
  const uid = privileged ? FAKE_UID : 1_000;
  for (const name of ['code', 'home', 'run', 'state']) {
    const path = join(folder, name);
    await mkdir(path, { recursive: true, mode: 0o700 });
    if (privileged) await chown(path, uid, uid);
  }
  const portFile = join(folder, 'run', 'port');
  const infoFile = join(folder, 'info.json');
  await rm(portFile, { force: true });
  await rm(infoFile, { force: true });
  await writeFile(join(folder, 'guestd.mjs'), guestDaemon, { mode: 0o644 });
  await writeFile(join(folder, 'passwd'), `root:x:0:0:root:/:/bin/sh\nberth:x:${uid}:${uid}::/home/berth:/bin/bash\n`, {
    mode: 0o644,
  });
  await writeFile(join(folder, 'hosts'), '127.0.0.1 localhost\n::1 localhost\n', { mode: 0o644 });
  await writeFile(join(folder, 'group'), `root:x:0:\nberth:x:${uid}:\n`, { mode: 0o644 });

  const environment = {
    PATH: '/usr/sbin:/usr/bin',
    [MARKER_NAME]: marker,
    BERTH_GUEST_ADDRESS: '127.0.0.1',
    BERTH_GUEST_PORT: '0',
    BERTH_GUEST_PORT_FILE: '/run/port',
    BERTH_GUEST_CLONE_STATE_FILE: '/run/clone.json',
    BERTH_GUEST_STATE_FOLDER: '/state',
    BERTH_GUEST_AGENT_CGROUPS: '',
    BERTH_GUEST_UID: String(uid),
    BERTH_GUEST_GID: String(uid),
    BERTH_GUEST_IDENTITY: 'record',
  };
  const drop = ['setpriv', '--reuid', String(uid), '--regid', String(uid), '--clear-groups'];
  // bwrap makes parents of mounts with closed permissions; make them explicitly with open ones.
  const argv: string[] = [
    ['bwrap'],
    ['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try', '--new-session'],
    privileged
      ? ['--cap-drop', 'ALL', '--cap-add', 'CAP_SETUID', '--cap-add', 'CAP_SETGID']
      : ['--unshare-user', '--uid', String(uid), '--gid', String(uid)],
    ['--clearenv'],
    Object.entries(environment).flatMap(([name, value]) => ['--setenv', name, value]),
    ['--ro-bind', '/usr', '/usr', '--symlink', 'usr/bin', '/bin', '--symlink', 'usr/sbin', '/sbin'],
    ['--symlink', 'usr/lib', '/lib', '--symlink', 'usr/lib64', '/lib64'],
    ['--proc', '/proc', '--dev', '/dev', '--perms', '1777', '--tmpfs', '/tmp'],
    ['--perms', '0755', '--dir', '/etc', '--perms', '0755', '--dir', '/home'],
    [
      '--ro-bind-try',
      '/etc/alternatives',
      '/etc/alternatives',
      '--ro-bind-try',
      '/etc/ld.so.cache',
      '/etc/ld.so.cache',
    ],
    ['passwd', 'group', 'hosts'].flatMap((name) => ['--ro-bind', join(folder, name), `/etc/${name}`]),
    [
      '--bind',
      join(folder, 'code'),
      '/code',
      '--bind',
      join(folder, 'home'),
      '/home/berth',
      '--bind',
      join(folder, 'run'),
      '/run',
      '--bind',
      join(folder, 'state'),
      '/state',
    ],
    ['--ro-bind', process.execPath, '/node', '--ro-bind', join(folder, 'guestd.mjs'), '/guestd.mjs'],
    agents === null ? [] : agentMounts(agents),
    ['--remount-ro', '/', '--chdir', '/', '--info-fd', '3', '--'],
    privileged ? drop : [],
    ['/node', ...GUEST_NODE_FLAGS, '/guestd.mjs'],
  ].flat();
  return { folder, portFile, infoFile, logFile: join(folder, 'guest.log'), argv };
}

/** Each program with the files beside and above it, under the paths of the host. */
function agentMounts({ list, programs }: FakeAgents): string[] {
  const target = '/opt/berth/agents/agents.json';
  const shown = [...new Set(programs.map((path) => dirname(dirname(path))))];
  const parents = [target, ...shown].flatMap((path) => parentsOf(path));
  return [
    ...[...new Set(parents)].flatMap((parent) => ['--perms', '0755', '--dir', parent]),
    ...['--ro-bind', list, target],
    ...shown.flatMap((path) => ['--ro-bind', path, path]),
  ];
}

/** Folders above a path, the highest first. */
function parentsOf(path: string): string[] {
  const parent = dirname(path);
  return parent === '/' ? [] : [...parentsOf(parent), parent];
}
