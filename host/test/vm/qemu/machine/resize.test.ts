import assert from 'node:assert/strict';
import { test } from 'node:test';
import { freeRegions, moduleSizes } from '../../../../src/vm/qemu/machine/hotplug.ts';
import { faultInSize, modulesToDrop, resizeQemu } from '../../../../src/vm/qemu/machine/resize.ts';
import { PretendedQemu } from './pretended-qemu.ts';

const SMALL = { vcpu: 1, memoryMib: 1_024, diskGib: 10 };

for (const size of [
  SMALL,
  { vcpu: 2, memoryMib: 2_048, diskGib: 20 },
  { vcpu: 8, memoryMib: 65_536, diskGib: 4_096 },
]) {
  test(`a VM of ${size.vcpu} vCPUs, ${size.memoryMib} MiB and ${size.diskGib} GiB can be made`, () => {
    assert.equal(faultInSize(size), null);
  });
}

for (const [wrong, said] of [
  [{ ...SMALL, vcpu: 0 }, /1 to 8 vCPUs, not 0/],
  [{ ...SMALL, vcpu: 9 }, /1 to 8 vCPUs, not 9/],
  [{ ...SMALL, memoryMib: 512 }, /1024 to 65536 MiB of memory in steps of 128, not 512/],
  [{ ...SMALL, memoryMib: 1_100 }, /steps of 128, not 1100/],
  [{ ...SMALL, memoryMib: 131_072 }, /not 131072/],
  [{ ...SMALL, diskGib: 5 }, /a disk of 10 to 4096 GiB, not 5/],
] as const) {
  test(`a VM of ${JSON.stringify(wrong)} is refused with the allowed values`, () => {
    assert.match(faultInSize(wrong) ?? '', said);
  });
}

for (const [memoryMib, sizes] of [
  [0, []],
  [128, [128]],
  [1_024, [1_024]],
  [3 * 1_024, [2_048, 1_024]],
  [15 * 1_024 + 896, [8_192, 4_096, 2_048, 1_024, 896]],
  [63 * 1_024, [32_768, 16_384, 8_192, 4_096, 2_048, 1_024]],
] as const) {
  test(`${memoryMib} MiB more are ${sizes.length} modules`, () => {
    assert.deepEqual(moduleSizes(memoryMib), sizes);
  });
}

const modules = (...sizesMib: number[]) =>
  sizesMib.map((sizeMib, slot) => ({ id: `module${slot}`, sizeMib, address: 2 ** 32, slot }));

for (const [has, surplusMib, ids, exchange] of [
  [[8_192, 4_096, 2_048, 1_024], 8_192, ['module0'], null],
  [[8_192, 4_096, 2_048, 1_024], 5_120, ['module1', 'module3'], null],
  // Among modules of one size, the last is unplugged.
  [[1_024, 1_024], 1_024, ['module1'], null],
  // Smaller modules replace larger ones; the VM never has less than the wanted size.
  [[8_192], 5_120, ['module0'], { id: 'module0', forMib: 3_072 }],
  [[8_192, 2_048], 3_072, ['module1', 'module0'], { id: 'module0', forMib: 7_168 }],
  [[], 1_024, [], null],
] as const) {
  test(`unplugging ${surplusMib} of ${has.join(', ') || 'no'} MiB removes ${ids.join(', ') || 'nothing'}`, () => {
    assert.deepEqual(modulesToDrop(modules(...has), surplusMib), { ids, exchange });
  });
}

test('a translation buffer region is free when no thread and no live code uses it', () => {
  const jit = (used: number, total = 66_945_024): string =>
    `Translation buffer state:\ngen code size       ${used}/${total}\nTB count 3\n`;
  assert.equal(freeRegions(jit(0), 1), 31);
  assert.equal(freeRegions(jit(59_254_483), 1), 3);
  assert.equal(freeRegions(jit(66_695_379), 1), 0);
  assert.equal(freeRegions('something else', 1), 0);
});

const NEVER = new AbortController().signal;
const LARGE = { vcpu: 2, memoryMib: 3_072, diskGib: 20 };
const allowDisk = async (): Promise<void> => {};

for (const [keeps, has] of [
  [[], SMALL],
  [['cpu1'], { ...SMALL, vcpu: 2 }],
  [['module0'], { ...SMALL, memoryMib: 3_072 }],
] as const) {
  test(`a growth that fails last is undone; guest keeps ${keeps.join(', ') || 'nothing'}, as reported`, async () => {
    const qemu = new PretendedQemu();
    keeps.forEach((id) => qemu.keeps.add(id));
    qemu.before = (command) => {
      assert.notEqual(command, 'block_resize', 'no space');
    };
    await assert.rejects(resizeQemu({ qmp: qemu.qmp, to: LARGE, allowDisk, signal: NEVER }), {
      name: 'ResizeFailed',
      message: /block_resize: no space/,
      has,
    });
    assert.deepEqual([[...qemu.devices], qemu.memoryMib], [keeps, has.memoryMib - SMALL.memoryMib]);
  });
}

test('a device plugged in after its caller gave up is removed too, or reported', async () => {
  for (const kept of [false, true]) {
    const qemu = new PretendedQemu();
    const abort = new AbortController();
    if (kept) qemu.keeps.add('module0');

    qemu.before = (command, { id }) => {
      if (command === 'device_add' && id === 'module0') abort.abort(new Error('its time is over'));
    };
    const has = { ...SMALL, memoryMib: kept ? 3_072 : 1_024 };
    await assert.rejects(resizeQemu({ qmp: qemu.qmp, to: LARGE, allowDisk, signal: abort.signal }), {
      message: 'its time is over',
      has,
    });
    assert.deepEqual([...qemu.devices], kept ? ['module0'] : []);
  }
});
