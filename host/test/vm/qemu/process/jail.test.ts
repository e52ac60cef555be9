import assert from 'node:assert/strict';
import { test } from 'node:test';
import { jailArgv, type Jail } from '../../../../src/vm/qemu/process/jail.ts';

const JAIL: Jail = {
  namespacePath: '/run/netns/berth7',
  imageFolder: '/cache/image/a',
  template: { folder: '/cache/template/b', writable: false },
  vmFolder: '/data/vms/c',
  memoryMib: 1_024,
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

test('a VM sees its own folder, and the image, template and its program read-only', () => {
  const argv = jailArgv(JAIL, '/usr/bin/true', []);
  assert.deepEqual(bindsOf(argv, '--bind'), [['/data/vms/c', '/vm']]);
  assert.deepEqual(bindsOf(argv, '--ro-bind'), [
    ['/usr/bin/true', '/usr/bin/true'],
    ['/cache/image/a', '/image'],
    ['/cache/template/b', '/template'],
  ]);
  assert.deepEqual(bindsOf(argv, '--dev-bind'), [['/dev/net/tun', '/dev/net/tun']]);
  for (const [folder] of bindsOf(argv, '--ro-bind-try')) assert.match(folder, /^\/usr\/(lib64$|lib\/[^/]+$|share\/)/);
});

test('/dev/kvm exists in the jail only under KVM', () => {
  assert.deepEqual(bindsOf(jailArgv({ ...JAIL, kvm: true }, '/usr/bin/true', []), '--dev-bind').at(1), [
    '/dev/kvm',
    '/dev/kvm',
  ]);
});

test('an encrypted VM has its passphrase and 64 MiB for device state in memory', () => {
  const argv = jailArgv({ ...JAIL, encrypted: true }, '/usr/bin/true', []);
  assert.match(argv.join(' '), / --size 67108864 --tmpfs \/memory --ro-bind-data 6 \/passphrase -- /);
  assert.doesNotMatch(jailArgv(JAIL, '/usr/bin/true', []).join(' '), /tmpfs|data 6/);
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
  assert.deepEqual(argv.slice(0, entering), [
    ...['prlimit', '--core=0', '--nproc=4096', '--nofile=1024'],
    ...[`--fsize=${11 * 2 ** 30}:`, `--data=${2.5 * 2 ** 30}:`, `--as=${18.5 * 2 ** 30}:`, '--'],
  ]);
  const underKvm = jailArgv({ ...JAIL, kvm: true }, '/usr/bin/program', []);
  assert.ok(underKvm.includes(`--data=${2 * 2 ** 30}:`), 'KVM translates no code');
  assert.deepEqual(argv.slice(entering, entering + 4), ['nsenter', '--net=/run/netns/berth7', '--', 'setpriv']);
  assert.deepEqual(argv.slice(argv.indexOf('bwrap') - 3, argv.indexOf('bwrap')), [
    'setpriv',
    '--bounding-set=-all',
    '--',
  ]);
  assert.deepEqual(argv.slice(-4), ['--', '/usr/bin/program', '-a', 'b']);
});
