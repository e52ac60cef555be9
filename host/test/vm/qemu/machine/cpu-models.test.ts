import assert from 'node:assert/strict';
import { test } from 'node:test';
import { qemuArgv } from '../../../../src/vm/qemu/machine/argv.ts';
import { modelsIn, TCG_MODEL, virtualization } from '../../../../src/vm/qemu/machine/cpu-models.ts';
import { machineHash, machineOptions } from '../../../../src/vm/qemu/machine/machine.ts';

const definition = (name: string, ...lacks: string[]) => ({ name, 'unavailable-features': lacks });

test('the first preferred model without a missing feature is chosen, and all supported ones are reported', () => {
  const found = [
    definition('EPYC-v1'),
    definition('EPYC-v2', 'ibpb'),
    definition('EPYC-Rome-v4'),
    definition('EPYC-Genoa-v1', 'avx512f'),
    definition('Haswell-v4'),
    definition('host'),
  ];
  assert.deepEqual(modelsIn(found, 'AuthenticAMD'), {
    supported: ['EPYC-v1', 'EPYC-Rome-v4'],
    chosen: 'EPYC-v1',
    lacks: ['ibpb'],
  });
});

test('a host whose KVM lacks what every processor has supports no model', () => {
  const found = ['Haswell-v4', 'Haswell-v2', 'SandyBridge-v1', 'Nehalem-v1', 'qemu64-v1'].map((name) =>
    definition(name, 'pni'),
  );
  assert.deepEqual(modelsIn(found, 'GenuineIntel'), { supported: [], chosen: null, lacks: ['pni'] });
});

test('KVM enforces the model, which does not change the hash of snapshots of earlier releases', () => {
  const start = { version: { text: '10', runWithUser: true }, uid: 1, tap: 't', rootDisk: 'root.ext4', name: 'vm' };
  const boot = { kernel: 'k', initramfs: 'i', commandLine: '' };
  const cpuOf = (accelerator: 'kvm' | 'tcg', cpuModel: string): string | undefined => {
    const argv = qemuArgv({ ...start, kind: 'boot', boot, accelerator, cpuModel });
    return argv[argv.indexOf('-cpu') + 1];
  };
  assert.equal(cpuOf('kvm', 'EPYC-v2'), 'EPYC-v2,enforce');
  assert.equal(cpuOf('tcg', TCG_MODEL), TCG_MODEL);
  assert.deepEqual(machineOptions('EPYC-v2').slice(5, 7), ['-cpu', 'EPYC-v2']);
  assert.notEqual(
    machineHash({ accelerator: 'kvm', cpuModel: 'EPYC-v2' }),
    machineHash({ accelerator: 'kvm', cpuModel: 'EPYC-v1' }),
  );
});

test('a record can name no options of QEMU beside the model', () => {
  for (const cpuModel of ['EPYC-v2,+svm', 'max,la57=on', 'host -device vfio', ''])
    assert.equal(virtualization.safeParse({ accelerator: 'kvm', cpuModel }).success, false, cpuModel);
  for (const cpuModel of ['EPYC-v2', TCG_MODEL])
    assert.equal(virtualization.safeParse({ accelerator: 'kvm', cpuModel }).success, true);
});
