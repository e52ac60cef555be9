// The jail's system call filter, an allow-list, in addition to QEMU's own: what QEMU needs from its
// start on, and nothing else. Derived from traces of the conformance suite, which also verifies it.
// Without effect on the vCPUs: guests make no system calls of the host.
import { compileFilter, type Comparison } from '@berth/os/system-call-filter.ts';
import type { SystemCall } from '@berth/os/system-calls.ts';
import { DriverError } from '../../driver.ts';

const MEMORY: SystemCall[] = ['brk', 'madvise', 'membarrier', 'mincore', 'mprotect', 'mremap'];
const FILES: SystemCall[] = [
  ...(['access', 'close', 'dup', 'dup2', 'dup3', 'faccessat', 'faccessat2', 'fadvise64', 'fallocate'] as const),
  ...(['fcntl', 'fdatasync', 'fstat', 'fstatfs', 'fsync', 'ftruncate', 'lseek'] as const),
  ...(['msync', 'munmap', 'newfstatat', 'openat', 'pipe2', 'pread64', 'preadv', 'pwrite64'] as const),
  ...(['pwritev', 'read', 'readlink', 'readv', 'statfs', 'statx', 'umask', 'unlink', 'write', 'writev'] as const),
];
/** Calls for Unix sockets: the control, which QEMU creates and accepts. */
const SOCKETS: SystemCall[] = [
  ...(['accept4', 'bind', 'getpeername', 'getsockname', 'getsockopt', 'listen', 'recvfrom', 'recvmsg'] as const),
  ...(['sendmsg', 'sendto', 'setsockopt', 'shutdown'] as const),
];
const EVENTS: SystemCall[] = [
  ...(['clock_getres', 'clock_gettime', 'clock_nanosleep', 'epoll_create1', 'epoll_ctl', 'epoll_pwait'] as const),
  ...(['epoll_pwait2', 'epoll_wait', 'eventfd2', 'futex', 'gettimeofday', 'nanosleep', 'poll'] as const),
  ...(['ppoll', 'restart_syscall', 'rt_sigaction', 'rt_sigprocmask', 'rt_sigreturn', 'rt_sigtimedwait'] as const),
  ...(['sigaltstack', 'signalfd4', 'time', 'timerfd_create', 'timerfd_gettime', 'timerfd_settime'] as const),
];
/** `tgkill`: QEMU interrupts its vCPUs; the jail has no other process. */
const THREADS: SystemCall[] = [
  ...(['arch_prctl', 'exit', 'exit_group', 'get_robust_list', 'rseq', 'sched_getaffinity', 'sched_yield'] as const),
  ...(['set_robust_list', 'set_tid_address', 'tgkill'] as const),
];
/**
 * `execve`: bwrap starts QEMU; QEMU's own filter then refuses it. `set*id`: QEMU drops root.
 * `wait4`: the first process of a jail that ends with its parent is bwrap's.
 */
const PROCESS: SystemCall[] = [
  ...(['execve', 'getegid', 'geteuid', 'getgid', 'getpid', 'getppid', 'getrandom', 'getrlimit'] as const),
  ...(['gettid', 'getuid', 'seccomp', 'setgid', 'setgroups', 'setuid', 'sysinfo', 'uname', 'wait4'] as const),
];

const AF_UNIX = 1;
const UNIX_SOCKET: Comparison[] = [{ argument: 0, equals: AF_UNIX }];

const CLONE_THREAD = 0x0001_0000;
/** CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
const NEW_NAMESPACES = 0x7e02_0080;

const RLIMIT_NOFILE = 7;

/**
 * PR_GET_DUMPABLE, SET_NAME, GET_NAME, GET_SECCOMP, SET_SECCOMP, CAPBSET_READ, SET_TIMERSLACK,
 * MCE_KILL, SET_NO_NEW_PRIVS, GET_NO_NEW_PRIVS, SET_VMA.
 */
const PRCTL = [3, 15, 16, 21, 22, 23, 29, 33, 38, 39, 0x5356_4d41];

/** TCGETS, FIONREAD, FIONBIO, and the calls on a TAP: TUNSETIFF to TUNSETVNETBE. */
const IOCTL = [
  ...[0x5401, 0x541b, 0x5421],
  ...[0x4004_54ca, 0x8004_54cf, 0x4004_54d0, 0x8004_54d2, 0x4004_54d4, 0x8004_54d7, 0x4004_54d8, 0x4004_54d9],
  ...[0x4004_54dc, 0x4004_54de],
];
/**
 * MAP_SHARED, MAP_ANONYMOUS and MAP_GROWSDOWN. Shared memory without a file and growing stacks are
 * memory that no resource limit counts.
 */
const MMAP_FLAGS = 0x121;
const MMAP: Comparison[][] = [0x00, 0x01, 0x20].map((equals) => [{ argument: 3, mask: MMAP_FLAGS, equals }]);

/** Every call on /dev/kvm, on a VM and on a vCPU has this type. */
const KVM: Comparison[] = [{ argument: 1, mask: 0xff00, equals: 0xae00 }];

/**
 * Program for `bwrap --seccomp`. Sockets are AF_UNIX only; `clone` makes threads only; the limit of
 * open files is the only one that can be set. Throws for an unknown architecture.
 */
export function qemuFilter(nodeArch: string): Buffer {
  try {
    return compileFilter(
      {
        others: 'refused',
        calls: [...MEMORY, ...FILES, ...SOCKETS, ...EVENTS, ...THREADS, ...PROCESS],
        conditional: {
          clone: [[{ argument: 0, mask: CLONE_THREAD + NEW_NAMESPACES, equals: CLONE_THREAD }]],
          ioctl: [KVM, ...IOCTL.map((equals): Comparison[] => [{ argument: 1, equals }])],
          mmap: MMAP,
          prctl: PRCTL.map((equals): Comparison[] => [{ argument: 0, equals }]),
          // Without new values the call only reads.
          prlimit64: [
            [{ argument: 1, equals: RLIMIT_NOFILE }],
            [
              { argument: 2, equals: 0 },
              { argument: 2, half: 'high', equals: 0 },
            ],
          ],
          setrlimit: [[{ argument: 0, equals: RLIMIT_NOFILE }]],
          socket: [UNIX_SOCKET],
          socketpair: [UNIX_SOCKET],
        },
      },
      nodeArch,
    );
  } catch (error) {
    throw new DriverError(`no system call filter: ${(error as Error).message}`, { cause: error });
  }
}
