// Conformance: a VM larger than the template has its vCPUs, memory and disk, as seen by the guest,
// before it counts as running.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { outputOf, type ConformanceOptions, type Subject } from './subject.ts';

export function sizeConforms(current: () => Subject, { spec, biggerSpecs }: ConformanceOptions): void {
  describe('the size of a VM', () => {
    for (const size of [spec, ...biggerSpecs]) {
      it(`is seen from inside: ${size.vcpu} vCPUs, ${size.memoryMib} MiB, ${size.diskGib} GiB`, async () => {
        const vm = await current().create(size);
        assert.equal(Number(await outputOf(vm.client, 'nproc')), size.vcpu);
        const memoryMib = Number(await outputOf(vm.client, "awk '/^MemTotal:/ {print int($2 / 1024)}' /proc/meminfo"));
        assert.ok(memoryMib > size.memoryMib * 0.85 && memoryMib <= size.memoryMib, `${memoryMib} MiB`);
        const diskMib = Number(await outputOf(vm.client, 'df -m --output=size / | tail -1'));
        assert.ok(diskMib > size.diskGib * 1_024 * 0.9 && diskMib <= size.diskGib * 1_024, `${diskMib} MiB`);
        // Run a program on a vCPU beyond the first; counting them is not enough.
        const last = size.vcpu - 1;
        assert.equal(
          await outputOf(vm.client, `taskset -c ${last} sh -c "cut -d' ' -f39 /proc/self/stat"`),
          String(last),
        );
        await current().destroy(vm);
      });
    }
  });
}
