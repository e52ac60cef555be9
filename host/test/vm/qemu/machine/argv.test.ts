import assert from 'node:assert/strict';
import { test } from 'node:test';
import { qemuArgv, type BootStart, type RebootStart, type RestoreStart } from '../../../../src/vm/qemu/machine/argv.ts';

const START = {
  version: { text: '10.0.2', runWithUser: true },
  accelerator: 'tcg',
  cpuModel: 'max,la57=off',
  uid: 200_007,
  tap: 'tap0',
  rootDisk: 'root.ext4',
  name: 'sbx_a',
} as const;
const RESTORE: RestoreStart = { ...START, kind: 'restore', vcpu: 1, devices: { cpus: [], modules: [] } };
const BOOT: BootStart = {
  ...START,
  kind: 'boot',
  boot: { kernel: 'vmlinuz', initramfs: 'initramfs', commandLine: 'quiet panic=-1' },
};

const REBOOT: RebootStart = { ...START, kind: 'reboot', vcpu: 8, boot: BOOT.boot };

/** Values of a repeatable option. */
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

test('an encrypted disk is opened with a passphrase from a file, and no other layer', () => {
  for (const start of [RESTORE, REBOOT]) {
    const argv = qemuArgv({ ...start, encrypted: true });
    assert.ok(valuesOf(argv, '-object').includes('secret,id=passphrase,file=/passphrase'));
    const encrypted = disksOf(argv).flatMap((disk) => ('encrypt' in disk ? [[disk['node-name'], disk.encrypt]] : []));
    assert.deepEqual(encrypted, [['disk', { format: 'luks', 'key-secret': 'passphrase' }]]);
    assert.equal(JSON.stringify(qemuArgv(start)).includes('passphrase'), false);
  }
});

test('a restore waits for the device state, whose stream has no configuration section', () => {
  const argv = qemuArgv(RESTORE);
  assert.deepEqual(valuesOf(argv, '-incoming'), ['defer']);
  assert.deepEqual(valuesOf(argv, '-global'), ['migration.send-configuration=off']);
  assert.deepEqual(valuesOf(argv, '-kernel'), []);
});

test('boot and restore use the same machine type and devices', () => {
  const machineOf = (argv: readonly string[]): unknown =>
    ['-cpu', '-M', '-smp', '-m', '-device', '-netdev'].map((option) => valuesOf(argv, option));
  assert.deepEqual(machineOf(qemuArgv(RESTORE)), machineOf(qemuArgv(BOOT)));
});

test('every PCI device has no option ROM', () => {
  for (const device of valuesOf(qemuArgv(RESTORE), '-device').filter((text) => text.includes('-pci')))
    assert.match(device, /,romfile=,/);
});

test('QEMU filters its system calls and runs as the user of its slot, by its version’s option', () => {
  const sandbox = 'on,obsolete=deny,elevateprivileges=allow,spawn=deny,resourcecontrol=deny';
  const argv = qemuArgv(RESTORE);
  assert.deepEqual([valuesOf(argv, '-sandbox'), valuesOf(argv, '-run-with')], [[sandbox], ['user=200007:200007']]);
  const older = qemuArgv({ ...RESTORE, version: { text: '8.2.2', runWithUser: false } });
  assert.deepEqual([valuesOf(older, '-runas'), valuesOf(older, '-run-with')], [['200007:200007'], []]);
});

test('each vCPU has its own thread; the translation buffer grows with their number', () => {
  assert.deepEqual(valuesOf(qemuArgv(RESTORE), '-accel'), ['tcg,thread=multi,tb-size=448']);
  assert.deepEqual(valuesOf(qemuArgv({ ...RESTORE, vcpu: 4 }), '-accel'), ['tcg,thread=multi,tb-size=472']);
  assert.deepEqual(valuesOf(qemuArgv({ ...RESTORE, accelerator: 'kvm' }), '-accel'), ['kvm']);
});

test('a VM that had devices starts paused with the same devices at the same addresses', () => {
  const devices = { cpus: [1, 3], modules: [{ id: 'module2', sizeMib: 2_048, address: 2 ** 32, slot: 1 }] };
  const argv = qemuArgv({ ...RESTORE, vcpu: 3, devices });
  assert.deepEqual(
    valuesOf(argv, '-device')
      .filter((text) => text.startsWith('{'))
      .map((text) => JSON.parse(text) as unknown),
    [
      { driver: 'pc-dimm', id: 'module2', memdev: 'module2-memory', addr: 4_294_967_296, slot: 1 },
      { driver: 'max-x86_64-cpu', id: 'cpu1', 'socket-id': 0, 'core-id': 1, 'thread-id': 0 },
      { driver: 'max-x86_64-cpu', id: 'cpu3', 'socket-id': 0, 'core-id': 3, 'thread-id': 0 },
    ],
  );
  assert.ok(valuesOf(argv, '-object').includes('memory-backend-ram,id=module2-memory,size=2048M'));
  assert.ok(argv.includes('-S'));
  const kvm = qemuArgv({
    ...RESTORE,
    accelerator: 'kvm',
    cpuModel: 'EPYC-v2',
    vcpu: 2,
    devices: { cpus: [1], modules: [] },
  });
  assert.match(valuesOf(kvm, '-device').at(-1) ?? '', /"EPYC-v2-x86_64-cpu"/);
});

test('a disk boots on a private copy of the template’s memory, with the usual machine', () => {
  const argv = qemuArgv(REBOOT);
  assert.deepEqual(disksOf(argv), disksOf(qemuArgv(RESTORE)));
  assert.equal(
    valuesOf(argv, '-object').find((object) => object.startsWith('memory-backend-file')),
    valuesOf(qemuArgv(RESTORE), '-object').find((object) => object.startsWith('memory-backend-file')),
  );
  assert.deepEqual([valuesOf(argv, '-incoming'), valuesOf(argv, '-append')], [[], ['quiet panic=-1']]);
});

test('a VM that shuts down stays paused until its daemon has read the reason', () => {
  assert.deepEqual(
    [RESTORE, REBOOT, BOOT].map((start) => valuesOf(qemuArgv(start), '-action')),
    [['shutdown=pause'], ['shutdown=pause'], []],
  );
});

test('a guest writes to one console, which is a ring of 64 KiB in the memory of QEMU, and to no file', () => {
  for (const start of [RESTORE, BOOT, REBOOT]) {
    const argv = qemuArgv(start);
    const [console, control, ...others] = valuesOf(argv, '-chardev');
    assert.deepEqual([console, others], ['ringbuf,id=console,size=65536', []]);
    assert.match(control ?? '', /^socket,id=control,/);
    for (const option of ['-serial', '-parallel', '-debugcon', '-D', '-logfile'])
      assert.deepEqual(valuesOf(argv, option), [], option);
    assert.ok(argv.includes('-nodefaults'));
  }
});
