// The jail of one QEMU: namespaces, read-only files, no capability but what QEMU needs to give
// itself up. Pure: builds the command line. What is left after QEMU's start is asserted from /proc
// by the tests: an own uid, no capabilities, no_new_privs, a seccomp filter.
import { JAIL_PATHS } from '../machine/argv.ts';
import { fileSizeLimit } from './file-size-limit.ts';

/** Descriptor on which bwrap says which pid it started; QEMU never sees it. */
export const STATUS_FD = 3;
/** Descriptor from which bwrap reads the filter of seccomp.ts. 4 is argv.ts's. */
export const FILTER_FD = 5;

export interface Jail {
  /** The network namespace to enter: /run/netns/NAME. */
  namespacePath: string;
  /**
   * Folders bound to the jail's top-level names; bwrap's intermediate folders would be closed to
   * QEMU's uid.
   */
  imageFolder: string;
  template: { folder: string; writable: boolean };
  vmFolder: string;
  /** Size of the machine's disk: no file of its QEMU grows much beyond it (file-size-limit.ts). */
  diskGib: number;
  kvm: boolean;
  /**
   * The process ends with the one that starts it (the template's boot); otherwise it survives it.
   */
  diesWithParent: boolean;
}

/**
 * The command that runs `program` with `args` in the jail. Start it in a session of its own, as
 * root, with {@link STATUS_FD} open for writing and the filter in {@link FILTER_FD}. */
export function jailArgv(jail: Jail, program: string, args: readonly string[]): [string, ...string[]] {
  return [
    ...(['prlimit', ...limitsOf(jail), '--'] as [string, ...string[]]),
    // Unlike `ip netns exec`, this leaves the mounts alone, which the jail replaces anyway.
    ...['nsenter', `--net=${jail.namespacePath}`, '--', 'bwrap'],
    ...['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try', '--new-session', '--clearenv'],
    // Pid 1 of the namespace takes the rest along when it ends. A VM that outlives its daemon needs
    // no such process beside it: QEMU is pid 1.
    ...(jail.diesWithParent ? ['--die-with-parent'] : ['--as-pid-1']),
    ...['--info-fd', String(STATUS_FD), '--seccomp', String(FILTER_FD)],
    ...['--cap-drop', 'ALL', ...CAPABILITIES.flatMap((capability) => ['--cap-add', capability])],
    ...[
      '--ro-bind',
      '/usr',
      '/usr',
      '--symlink',
      'usr/lib',
      '/lib',
      '--symlink',
      'usr/lib64',
      '/lib64',
      '--symlink',
      'usr/bin',
      '/bin',
    ],
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
    ...['--', program, ...args],
  ];
}

/**
 * To become another user, to open the TAP, and to open files that belong to root, all before QEMU
 * gives up being root.
 */
const CAPABILITIES = ['CAP_SETUID', 'CAP_SETGID', 'CAP_NET_ADMIN', 'CAP_DAC_OVERRIDE'] as const;

/**
 * QEMU has some ten threads, and up to 64 more for its disk. Counted by user, and until QEMU
 * becomes the slot's user that is root.
 */
const THREADS = 4_096;

/**
 * What a QEMU in foreign hands may take of the machine beside its memory. Of core files and threads
 * soft and hard: it has no capability to raise them. Without core files, which would hold the
 * tenant's memory and fill a disk.
 */
function limitsOf({ diskGib }: Jail): string[] {
  return ['--core=0', `--fsize=${fileSizeLimit(diskGib)}:`, `--nproc=${THREADS}`];
}
