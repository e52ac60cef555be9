// Target of a resize, and its increases.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { storageGib } from '@berth/protocol/host.ts';
import { capacityRemedy } from '@berth/protocol/host.ts';
import { largerOf, sameSize, targetOf } from '../../../src/rules/sandboxes/allocation-target.ts';
import { describeExcess, describeShortageOn, growth } from '../../../src/rules/hosts/placement.ts';

const PRESENT = { vcpu: 2, memoryGb: 4, diskGb: 20 };

test('a resize keeps unspecified amounts', () => {
  assert.deepEqual(targetOf(PRESENT, { vcpu: 1 }), { ...PRESENT, vcpu: 1 });
  assert.deepEqual(targetOf(PRESENT, { memoryGb: 8, diskGb: 40 }), { vcpu: 2, memoryGb: 8, diskGb: 40 });
  assert.ok(sameSize(targetOf(PRESENT, {}), PRESENT));
});

test('only increases need capacity, all of them together', () => {
  assert.deepEqual(growth(PRESENT, { vcpu: 4, memoryGb: 4, diskGb: 10 }), { vcpu: 4 });
  assert.deepEqual(growth(PRESENT, { vcpu: 1, memoryGb: 8, diskGb: 21 }), {
    memoryMib: 8_192,
    diskGib: storageGib({ memoryMib: 8_192, diskGib: 21 }),
  });
  assert.deepEqual(growth(PRESENT, PRESENT), {});
});

test('a live step targets the larger of each amount', () => {
  assert.deepEqual(largerOf(PRESENT, { vcpu: 1, memoryGb: 8, diskGb: 20 }), { vcpu: 2, memoryGb: 8, diskGb: 20 });
});

test('a shortage names the missing resource, never one that is not requested', () => {
  const free = { vcpu: 1, memoryMib: 4_096, diskGib: -5 };
  assert.equal(describeShortageOn(free, { vcpu: 1, memoryMib: 4_096 }), undefined);
  assert.equal(describeShortageOn(free, { vcpu: 2 }), `needs 2 vCPU, 1 are free. ${capacityRemedy('vcpu')}`);
  assert.equal(
    describeShortageOn(free, { diskGib: 1 }),
    `needs 1 GiB of disk (snapshot included), 0 are free. ${capacityRemedy('diskGib')}`,
  );
});

test('the first amount above the maximal VM is named', () => {
  const largest = { vcpu: 8, memoryMib: 8_192, diskGib: 100 };
  assert.equal(describeExcess({ vcpu: 8, memoryGb: 8, diskGb: 100 }, largest), undefined);
  assert.equal(
    describeExcess({ vcpu: 8, memoryGb: 9, diskGb: 101 }, largest),
    '9216 MiB of memory exceeds the 8192 that its host can give one VM',
  );
});
