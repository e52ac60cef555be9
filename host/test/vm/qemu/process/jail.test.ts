import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { FILTER_FD, jailArgv, type Jail } from '../../../../src/vm/qemu/process/jail.ts';
import { fileSizeFilter } from '../../../../src/vm/qemu/process/seccomp.ts';

const JAIL: Jail = {
  namespacePath: '/run/netns/berth7',
  imageFolder: '/cache/image/a',
  template: { folder: '/cache/template/b', writable: false },
  vmFolder: '/data/vms/c',
  diskGib: 10,
  kvm: false,
  diesWithParent: false,
};

/** Pairs of source and target for a kind of bind. */
function bindsOf(argv: readonly string[], kind: string): [string, string][] {
  return argv.flatMap((argument, at) =>
    argument === kind ? [[argv[at + 1] ?? '', argv[at + 2] ?? ''] as [string, string]] : [],
  );
}

test('a VM sees its own folder, and the image, template and programs read-only', () => {
  const argv = jailArgv(JAIL, '/usr/bin/true', []);
  assert.deepEqual(bindsOf(argv, '--bind'), [['/data/vms/c', '/vm']]);
  assert.deepEqual(bindsOf(argv, '--ro-bind'), [
    ['/usr', '/usr'],
    ['/cache/image/a', '/image'],
    ['/cache/template/b', '/template'],
  ]);
  assert.deepEqual(bindsOf(argv, '--dev-bind'), [['/dev/net/tun', '/dev/net/tun']]);
});

test('/dev/kvm exists in the jail only under KVM', () => {
  assert.deepEqual(bindsOf(jailArgv({ ...JAIL, kvm: true }, '/usr/bin/true', []), '--dev-bind').at(1), [
    '/dev/kvm',
    '/dev/kvm',
  ]);
});

test('a VM outlives its parent process; the VM that makes a template does not', () => {
  assert.equal(jailArgv(JAIL, '/usr/bin/true', []).includes('--die-with-parent'), false);
  const building = jailArgv(
    { ...JAIL, template: { folder: '/cache/x', writable: true }, diesWithParent: true },
    '/usr/bin/true',
    [],
  );
  assert.equal(building.includes('--die-with-parent'), true);
  assert.deepEqual(bindsOf(building, '--bind')[0], ['/cache/x', '/template']);
});

test('limits are set first, then the slot’s namespace is entered, and the program starts last', () => {
  const argv = jailArgv(JAIL, '/usr/bin/program', ['-a', 'b']);
  const entering = argv.indexOf('nsenter');
  assert.deepEqual(argv.slice(0, entering), ['prlimit', '--core=0', `--fsize=${11 * 2 ** 30}:`, '--nproc=4096', '--']);
  assert.deepEqual(argv.slice(entering, entering + 4), ['nsenter', '--net=/run/netns/berth7', '--', 'bwrap']);
  assert.deepEqual(argv.slice(-4), ['--', '/usr/bin/program', '-a', 'b']);
});

test('a process in the jail cannot change its file size limit, but can read it and change others', (context) => {
  const script = [
    'prlimit --noheadings --raw --output=SOFT --fsize',
    'prlimit --fsize=2000000: --pid=$$ 2>/dev/null || echo refused',
    'ulimit -f 4000 2>/dev/null || echo refused',
    'ulimit -S -n 64 && echo allowed',
  ].join('; ');
  const folder = mkdtempSync(join(tmpdir(), 'berth-jail-'));
  context.after(() => rmSync(folder, { recursive: true }));
  const filter = join(folder, 'filter');
  writeFileSync(filter, fileSizeFilter(process.arch));
  const bwrap = ['--ro-bind', '/', '/', '--seccomp', String(FILTER_FD), '--', 'bash', '-c', script];
  const run = spawnSync('bash', ['-c', `exec ${FILTER_FD}<"$0"; exec bwrap "$@"`, filter, ...bwrap], {
    encoding: 'utf8',
  });
  assert.deepEqual(
    [run.status, run.stdout.trim().split('\n').slice(1)],
    [0, ['refused', 'refused', 'allowed']],
    run.stderr,
  );
});

test('a CPU with unknown system call numbers is reported', () => {
  assert.throws(() => fileSizeFilter('mips'), /no system call filter is known for mips/);
});
