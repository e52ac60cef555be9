// The system call filter of the database, the API and the guest gateway, in addition to their
// confinement: refuses what none needs and what has been a way into the kernel. A deny-list: the
// calls of a runtime and of a database vary with their versions.
import { compileFilter } from '../system-call-filter.ts';
import type { SystemCall } from '../system-calls.ts';

/** `clone3` has its flags in memory, where no filter sees them; libraries then use `clone`. */
const REFUSED: SystemCall[] = [
  ...(['acct', 'add_key', 'adjtimex', 'bpf', 'chroot', 'clock_adjtime', 'clock_settime', 'clone3'] as const),
  ...(['delete_module', 'fanotify_init', 'finit_module', 'fsconfig', 'fsmount', 'fsopen', 'fspick'] as const),
  ...(['get_mempolicy', 'init_module', 'io_uring_enter', 'io_uring_register', 'io_uring_setup', 'ioperm'] as const),
  ...(['iopl', 'kcmp', 'kexec_file_load', 'kexec_load', 'keyctl', 'lookup_dcookie', 'mbind', 'memfd_secret'] as const),
  ...(['migrate_pages', 'mount', 'mount_setattr', 'move_mount', 'move_pages', 'name_to_handle_at'] as const),
  ...(['open_by_handle_at', 'open_tree', 'perf_event_open', 'personality', 'pidfd_getfd', 'pidfd_open'] as const),
  ...(['pivot_root', 'process_madvise', 'process_vm_readv', 'process_vm_writev', 'ptrace', 'quotactl'] as const),
  ...(['quotactl_fd', 'reboot', 'request_key', 'set_mempolicy', 'setdomainname', 'sethostname', 'setns'] as const),
  ...(['settimeofday', 'swapoff', 'swapon', 'syslog', 'umount2', 'unshare', 'userfaultfd', 'vhangup'] as const),
  ...(['vmsplice'] as const),
];

/** AF_UNIX, AF_INET, AF_INET6, and AF_NETLINK, with which the resolver lists addresses. */
const SOCKET_FAMILIES = [1, 2, 10, 16];

/** CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
const NEW_NAMESPACES = 0x7e02_0080;

/** Program for `bwrap --seccomp`. Throws for an unknown architecture. */
export function serviceFilter(nodeArch: string): Buffer {
  return compileFilter(
    {
      others: 'allowed',
      calls: REFUSED,
      conditional: {
        clone: [[{ argument: 0, mask: NEW_NAMESPACES, equals: 0 }]],
        socket: SOCKET_FAMILIES.map((equals) => [{ argument: 0, equals }]),
      },
    },
    nodeArch,
  );
}
