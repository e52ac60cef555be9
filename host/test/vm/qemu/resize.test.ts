import assert from 'node:assert/strict';
import { test } from 'node:test';
import { faultInSize } from '../../../src/vm/qemu/resize.ts';

const SMALL = { vcpu: 1, memoryMib: 1_024, diskGib: 10 };

for (const size of [SMALL, { vcpu: 2, memoryMib: 2_048, diskGib: 20 }, { vcpu: 8, memoryMib: 65_536, diskGib: 4_096 }]) {
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
  test(`a VM of ${JSON.stringify(wrong)} is refused with what is allowed`, () => {
    assert.match(faultInSize(wrong) ?? '', said);
  });
}
