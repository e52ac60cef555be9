// Choice of a host: only with capacity, the emptiest first, and shortages that name the resource.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { MACHINE_SIZES, machineSize } from '@berth/contract/sandboxes/machine-sizes.ts';
import { CAPACITY_SETTINGS, capacityRemedy } from '@berth/protocol/host.ts';
import fc from 'fast-check';
import { describeShortage, hostsWithRoom, roomFor, type HostCandidate } from '../../../src/rules/hosts/placement.ts';

const host = (id: string, vcpu: number, memoryMib: number, diskGib: number): HostCandidate => ({
  id,
  free: { vcpu, memoryMib, diskGib },
});
const candidates = fc.uniqueArray(
  fc.record({
    id: fc.stringMatching(/^[a-z]{3}$/),
    free: fc.record({
      vcpu: fc.integer({ min: -8, max: 64 }),
      memoryMib: fc.integer({ min: -4_096, max: 65_536 }),
      diskGib: fc.integer({ min: -10, max: 500 }),
    }),
  }),
  { selector: ({ id }) => id },
);

test('a host is a candidate if it has capacity for every resource, emptiest first', () => {
  fc.assert(
    fc.property(candidates, fc.constantFrom(...machineSize.options), (hosts, size) => {
      const needed = roomFor(MACHINE_SIZES[size]);
      const offered = hostsWithRoom(hosts, needed);
      const fits = ({ free }: HostCandidate): boolean =>
        free.vcpu >= needed.vcpu && free.memoryMib >= needed.memoryMib && free.diskGib >= needed.diskGib;
      assert.deepEqual(new Set(offered), new Set(hosts.filter(fits)));
      for (const [index, { free }] of offered.entries())
        assert.ok(index === 0 || free.memoryMib <= (offered[index - 1]?.free.memoryMib ?? 0));
    }),
  );
});

test('a shortage names the resource, the required and the largest free amount', () => {
  const needed = roomFor(MACHINE_SIZES.large);
  assert.equal(
    describeShortage([host('a', 64, 2_048, 500), host('b', 64, 4_096, 500)], needed),
    `needs 8192 MiB of memory, at most 4096 free on one host. ${capacityRemedy('memoryMib')}`,
  );
  assert.equal(
    describeShortage([host('a', 2, 65_536, 500)], needed),
    'needs 4 vCPU, at most 2 free on one host. ' +
      'The operator can raise the limit with --cpu-overcommit (BERTH_CPU_OVERCOMMIT).',
  );
  assert.equal(
    describeShortage([host('a', 64, 65_536, -3)], needed),
    `needs 49 GiB of disk (snapshot included), at most 0 free on one host. ${capacityRemedy('diskGib')}`,
  );
});

test('every setting that a shortage names is in docs/operations.md', () => {
  const operations = readFileSync(join(import.meta.dirname, '../../../../docs/operations.md'), 'utf8');
  for (const [resource, settings] of Object.entries(CAPACITY_SETTINGS)) {
    const names = settings.match(/--[a-z-]+|BERTH_[A-Z_]+/g) ?? [];
    assert.notEqual(names.length, 0, resource);
    for (const name of names) assert.ok(operations.includes(`\`${name}\``), name);
  }
});
