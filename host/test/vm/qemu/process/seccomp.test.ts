// The filter of a jailed QEMU: by an interpreter, and by the kernel. A VM's conformance suite
// verifies that QEMU works with it.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { architectureOf, type SystemCall } from '@berth/os/system-calls.ts';
import { runFilter } from '../../../../../os/test/run-filter.ts';
import { FILTER_FD } from '../../../../src/vm/qemu/process/jail.ts';
import { qemuFilter } from '../../../../src/vm/qemu/process/seccomp.ts';

const CALLS = 512;
const REFUSED: SystemCall[] = [
  ...(['add_key', 'bpf', 'chroot', 'clone3', 'finit_module', 'init_module', 'io_uring_setup', 'kexec_load'] as const),
  ...([
    'keyctl',
    'memfd_create',
    'mount',
    'mount_setattr',
    'move_mount',
    'open_tree',
    'perf_event_open',
    'pidfd_getfd',
  ] as const),
  ...(['pidfd_open', 'pivot_root', 'process_vm_readv', 'process_vm_writev', 'ptrace', 'setns', 'unshare'] as const),
  ...(['userfaultfd'] as const),
];

for (const nodeArch of ['x64', 'arm64']) {
  test(`QEMU on ${nodeArch} has a short list of system calls, without the dangerous ones`, () => {
    const { audit, numberOf } = architectureOf(nodeArch);
    const filter = qemuFilter(nodeArch);
    const run = (number: number, ...args: bigint[]) =>
      runFilter(filter, { number, architecture: audit, arguments: args });
    const allowed = Array.from({ length: CALLS }, (_, number) => number).filter((number) => run(number) === 'allowed');
    assert.ok(allowed.length > 60 && allowed.length <= 115, `${allowed.length} calls are allowed`);
    for (const call of REFUSED) assert.equal(run(numberOf(call) as number), 38, call);
    // The default child of fork, a thread, and a thread in a new user namespace.
    const clone = numberOf('clone') as number;
    assert.deepEqual(
      [0x0120_0011n, 0x003d_0f00n, 0x103d_0f00n].map((flags) => run(clone, flags)),
      [1, 'allowed', 1],
    );
    // Anonymous memory, a file, and shared files; shared anonymous memory, and a growing stack.
    const mmap = numberOf('mmap') as number;
    assert.deepEqual(
      [0x22n, 0x0002_0022n, 0x02n, 0x01n, 0x21n, 0x122n].map((flags) => run(mmap, 0n, 4_096n, 3n, flags)),
      ['allowed', 'allowed', 'allowed', 'allowed', 1, 1],
    );
    const ioctl = numberOf('ioctl') as number;
    // TUNSETIFF, KVM_RUN; TIOCSTI, SIOCGIFCONF, TUNATTACHFILTER.
    assert.deepEqual(
      [0x4004_54can, 0xae80n, 0x5412n, 0x8912n, 0x4010_54d5n].map((request) => run(ioctl, 3n, request)),
      ['allowed', 'allowed', 1, 1, 1],
    );
  });
}

test('the kernel refuses other sockets than unix ones, processes, and new limits but of open files', (context) => {
  const { numberOf } = architectureOf(process.arch);
  const [prlimit, iouring] = [numberOf('prlimit64'), numberOf('io_uring_setup')];
  const script = `
    sub say { print "$_[0]=", ($_[1] ? "yes" : $! + 0), "\\n" }
    say("unix", socket(S, 1, 1, 0));
    say("family $_", socket(S, $_, 3, 0)) for (2, 10, 16, 17, 38, 40);
    say("pair", socketpair(A, B, 1, 1, 0));
    say("fork", defined(fork()));
    my $new = pack("QQ", 64, 64); my $old = "\\0" x 16;
    say("set files", syscall(${prlimit}, 0, 7, $new, 0) == 0);
    say("set file size", syscall(${prlimit}, 0, 1, $new, 0) == 0);
    say("read file size", syscall(${prlimit}, 0, 1, 0, $old) == 0);
    my $params = "\\0" x 120;
    say("io_uring", syscall(${iouring}, 4, $params) >= 0);`;
  assert.deepEqual(runFiltered(context, script), [
    'unix=yes',
    ...[2, 10, 16, 17, 38, 40].map((family) => `family ${family}=1`),
    ...['pair=yes', 'fork=1', 'set files=yes', 'set file size=1', 'read file size=yes', 'io_uring=38'],
  ]);
});

test('a CPU with unknown system call numbers is reported', () => {
  assert.throws(() => qemuFilter('mips'), /no system call filter: no system call numbers are known for mips/);
});

/** Runs a Perl script in place of QEMU; returns its lines. */
function runFiltered(context: TestContext, script: string): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'berth-filter-'));
  context.after(() => rmSync(folder, { recursive: true }));
  const filter = join(folder, 'filter');
  writeFileSync(filter, qemuFilter(process.arch));
  const bwrap = ['--ro-bind', '/', '/', '--dev', '/dev', '--seccomp', String(FILTER_FD), '--', 'perl', '-e', script];
  const run = spawnSync('bash', ['-c', `exec ${FILTER_FD}<"$0"; exec bwrap "$@"`, filter, ...bwrap], {
    encoding: 'utf8',
  });
  assert.equal(run.status, 0, run.stderr);
  return run.stdout.trim().split('\n');
}
