// The jail of one QEMU: namespaces, read-only files, and only the capabilities that QEMU needs to
// drop root. Pure: builds the command line. Tests assert the result from /proc: own uid, no
// capabilities, no_new_privs, a seccomp filter.
import { join } from 'node:path';
import { JAIL_PATHS, PASSPHRASE_PATH } from '../machine/argv.ts';
import { limitArguments } from './limits.ts';

/** Descriptor on which bwrap reports the pid that it started; closed for QEMU. */
export const STATUS_FD = 3;
/** Descriptor from which bwrap reads the filter of seccomp.ts. argv.ts uses 4. */
export const FILTER_FD = 5;
/** Descriptor from which bwrap reads the passphrase of an encrypted disk. */
export const PASSPHRASE_FD = 6;
/** Space for files that QEMU writes and that must reach no disk: the device state. */
const MEMORY_FOLDER_BYTES = 64 * 2 ** 20;

export interface Jail {
  /** Folder of the control group to start in; default: that of the daemon. */
  cgroup?: string | null;
  /** Network namespace to enter: /run/netns/NAME. */
  namespacePath: string;
  /** Folders bound to top-level names: QEMU's uid could not pass bwrap's intermediate folders. */
  imageFolder: string;
  template: { folder: string; writable: boolean };
  vmFolder: string;
  /** Size of the VM, which bounds QEMU's files and memory (limits.ts). */
  memoryMib: number;
  diskGib: number;
  kvm: boolean;
  /** The VM's disk and snapshots are encrypted. */
  encrypted?: boolean;
  /** The process dies with its parent (the template's boot), instead of surviving it. */
  diesWithParent: boolean;
}

/**
 * The command that runs `program` with `args` in the jail. Start it as root in a new POSIX session,
 * with {@link STATUS_FD} open for writing and the filter in {@link FILTER_FD}.
 */
export function jailArgv(jail: Jail, program: string, args: readonly string[]): [string, ...string[]] {
  const { cgroup = null } = jail;
  const limited: [string, ...string[]] = ['prlimit', ...limitsOf(jail), '--'];
  const started: [string, ...string[]] =
    cgroup === null ? limited : ['sh', '-c', JOIN, join(cgroup, 'cgroup.procs'), ...limited];
  return [
    ...started,
    // Unlike `ip netns exec`, keeps the mounts, which the jail replaces anyway.
    ...['nsenter', `--net=${jail.namespacePath}`, '--'],
    // A root without bounding set keeps inherited capabilities only. In this order: without the
    // bounding set none can be made inheritable.
    ...['setpriv', `--inh-caps=-all,${OF_BWRAP}`, '--', 'setpriv', '--bounding-set=-all', '--', 'bwrap'],
    ...['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try', '--new-session', '--clearenv'],
    // The namespace ends with its pid 1. A VM that outlives its daemon needs no separate pid 1:
    // QEMU takes that role.
    ...(jail.diesWithParent ? ['--die-with-parent'] : ['--as-pid-1']),
    ...['--info-fd', String(STATUS_FD), '--seccomp', String(FILTER_FD)],
    ...['--cap-drop', 'ALL', ...CAPABILITIES.flatMap((capability) => ['--cap-add', capability])],
    ...['--ro-bind', program, program],
    ...PROGRAM_FOLDERS.flatMap((folder) => ['--ro-bind-try', folder, folder]),
    ...['--symlink', 'usr/lib', '/lib', '--symlink', 'usr/lib64', '/lib64'],
    ...[
      '--dev',
      '/dev',
      '--dev-bind',
      '/dev/net/tun',
      '/dev/net/tun',
      ...(jail.kvm ? ['--dev-bind', '/dev/kvm', '/dev/kvm'] : []),
    ],
    ...['--ro-bind', jail.imageFolder, JAIL_PATHS.image],
    ...[jail.template.writable ? '--bind' : '--ro-bind', jail.template.folder, JAIL_PATHS.template],
    ...['--bind', jail.vmFolder, JAIL_PATHS.vm, '--chdir', '/'],
    ...(jail.encrypted === true ? ['--size', String(MEMORY_FOLDER_BYTES), '--tmpfs', JAIL_PATHS.memory] : []),
    ...(jail.encrypted === true ? ['--ro-bind-data', String(PASSPHRASE_FD), PASSPHRASE_PATH] : []),
    ...['--', program, ...args],
  ];
}

/** Everything that the shell becomes and starts belongs to the group. */
const JOIN = 'echo 0 >"$0" && exec "$@"';

/**
 * Required to switch users, to open the TAP and to open root's files, all before QEMU drops root.
 */
const CAPABILITIES = ['CAP_SETUID', 'CAP_SETGID', 'CAP_NET_ADMIN', 'CAP_DAC_OVERRIDE'] as const;

/** The same, and those with which bwrap makes the jail. */
const OF_BWRAP = [...CAPABILITIES, 'CAP_SYS_ADMIN', 'CAP_SYS_CHROOT', 'CAP_SETPCAP']
  .map((capability) => `+${capability.slice('CAP_'.length).toLowerCase()}`)
  .join(',');

/** Libraries and firmware of QEMU, as far as the distribution has them. */
const PROGRAM_FOLDERS = [
  ...['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/usr/lib64'],
  ...['/usr/share/qemu', '/usr/share/seabios'],
];

/**
 * QEMU has about ten threads, and up to 64 more for its disk. The limit counts per user, and that
 * is root until QEMU switches to the slot's user.
 */
const THREADS = 4_096;

/** Limit for sockets and pipes, whose buffers are memory of the kernel. QEMU has about 100. */
const OPEN_FILES = 1_024;

/**
 * Resource limits of a possibly compromised QEMU. Those of core files, threads and open files are
 * hard: without capabilities QEMU cannot raise them. No core files: they would contain tenant
 * memory and fill the disk.
 */
function limitsOf(jail: Jail): string[] {
  return ['--core=0', `--nproc=${THREADS}`, `--nofile=${OPEN_FILES}`, ...limitArguments(jail)];
}
