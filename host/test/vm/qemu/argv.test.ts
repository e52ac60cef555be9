import assert from 'node:assert/strict';
import { test } from 'node:test';
import { qemuArgv, type BootStart, type RestoreStart } from '../../../src/vm/qemu/argv.ts';

const START = {
  version: { text: '10.0.2', runWithUser: true },
  accelerator: 'tcg',
  hostVendor: 'AuthenticAMD',
  uid: 200_007,
  tap: 'tap0',
  rootDisk: 'root.ext4',
  name: 'sbx_a',
} as const;
const RESTORE: RestoreStart = { ...START, kind: 'restore', vcpu: 1 };
const BOOT: BootStart = { ...START, kind: 'boot', boot: { kernel: 'vmlinuz', initramfs: 'initramfs', commandLine: 'quiet panic=-1' } };

/** Values of an option that may be given more than once. */
function valuesOf(argv: readonly string[], option: string): string[] {
  return argv.flatMap((argument, at) => (argument === option ? [argv[at + 1] ?? ''] : []));
}

interface Disk {
  driver: string;
  'node-name': string;
  'read-only'?: boolean;
  backing?: string;
}

function disksOf(argv: readonly string[]): Disk[] {
  return valuesOf(argv, '-blockdev').map((text) => JSON.parse(text) as Disk);
}

test('a restore maps the template privately from a file opened read-only', () => {
  const memory = valuesOf(qemuArgv(RESTORE), '-object').find((object) => object.startsWith('memory-backend-file'));
  assert.equal(memory, 'memory-backend-file,id=mem,size=1024M,mem-path=/template/memory,share=off,readonly=on,rom=off');
});

test('a boot writes memory and disk of the template in place', () => {
  const argv = qemuArgv(BOOT);
  const memory = valuesOf(argv, '-object').find((object) => object.startsWith('memory-backend-file'));
  assert.match(memory ?? '', /share=on$/);
  assert.deepEqual(valuesOf(argv, '-append'), ['quiet panic=-1']);
  assert.deepEqual(valuesOf(argv, '-incoming'), []);
});

test('a restore writes to its overlay only, and every layer below is read-only with its format given', () => {
  const disks = disksOf(qemuArgv(RESTORE));
  assert.deepEqual(
    disks.map((disk) => [disk.driver, disk['node-name'], disk['read-only'] ?? false, disk.backing ?? null]),
    [
      ['file', 'base-file', true, null],
      ['raw', 'base', true, null],
      ['file', 'template-file', true, null],
      ['qcow2', 'template', true, 'base'],
      ['file', 'disk-file', false, null],
      ['qcow2', 'disk', false, 'template'],
    ],
  );
});

test('a restore waits for the state of the devices, whose stream has no configuration section', () => {
  const argv = qemuArgv(RESTORE);
  assert.deepEqual(valuesOf(argv, '-incoming'), ['defer']);
  assert.deepEqual(valuesOf(argv, '-global'), ['migration.send-configuration=off']);
  assert.deepEqual(valuesOf(argv, '-kernel'), []);
});

test('boot and restore have the same machine', () => {
  const machineOf = (argv: readonly string[]): unknown =>
    ['-cpu', '-M', '-smp', '-m', '-device', '-netdev'].map((option) => valuesOf(argv, option));
  assert.deepEqual(machineOf(qemuArgv(RESTORE)), machineOf(qemuArgv(BOOT)));
});

test('every PCI device comes without firmware of its own', () => {
  for (const device of valuesOf(qemuArgv(RESTORE), '-device').filter((text) => text.includes('-pci'))) {
    assert.match(device, /,romfile=,/);
  }
});

test('QEMU filters its system calls and becomes the user of its slot, by the option its version has', () => {
  const sandbox = 'on,obsolete=deny,elevateprivileges=allow,spawn=deny,resourcecontrol=deny';
  const argv = qemuArgv(RESTORE);
  assert.deepEqual([valuesOf(argv, '-sandbox'), valuesOf(argv, '-run-with')], [[sandbox], ['user=200007:200007']]);
  const older = qemuArgv({ ...RESTORE, version: { text: '8.2.2', runWithUser: false } });
  assert.deepEqual([valuesOf(older, '-runas'), valuesOf(older, '-run-with')], [['200007:200007'], []]);
});

test('each vCPU is emulated in a thread of its own, with a translation buffer that grows with their number', () => {
  assert.deepEqual(valuesOf(qemuArgv(RESTORE), '-accel'), ['tcg,thread=multi,tb-size=40']);
  assert.deepEqual(valuesOf(qemuArgv({ ...RESTORE, vcpu: 4 }), '-accel'), ['tcg,thread=multi,tb-size=64']);
  assert.deepEqual(valuesOf(qemuArgv({ ...RESTORE, accelerator: 'kvm' }), '-accel'), ['kvm']);
});
