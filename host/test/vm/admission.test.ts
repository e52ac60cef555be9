import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import {
  capacityOf,
  growthOf,
  largestOf,
  allocatableOf,
  parseMeminfo,
  promisedTo,
  readHost,
  reservationOf,
  shortageFor,
  type AdmissionPolicy,
  type HeldVm,
  type HostFigures,
} from '../../src/vm/admission.ts';

const POLICY: AdmissionPolicy = {
  cpuOvercommit: 2,
  memoryOvercommit: 1,
  memoryReserveMib: 1_000,
  vmOverheadMib: 100,
  diskOvercommit: 2,
  diskReserveGib: 10,
};
const MACHINE: HostFigures = {
  cores: 2,
  memTotalMib: 5_000,
  memAvailableMib: 4_500,
  diskTotalGib: 110,
  diskFreeGib: 100,
  diskOthersGib: 0,
};
const VM = { vcpu: 1, memoryMib: 1_000, diskGib: 10 };

function held(count: number, holds: HeldVm['holds'] = 'using', reserves = VM): HeldVm[] {
  return Array.from({ length: count }, () => ({ holds, reserves }));
}

describe('admission', () => {
  it('promises cores times overcommit, memory without reserve, and disk times overcommit', () => {
    assert.deepEqual(capacityOf(MACHINE, POLICY), { vcpu: 4, memoryMib: 4_000, diskGib: 200 });
  });

  it('admits every VM within its offer', () => {
    const sizes = fc.array(fc.integer({ min: 1_024, max: 4_096 }), { maxLength: 40 });
    fc.assert(
      fc.property(sizes, fc.integer({ min: 2_000, max: 60_000 }), (asked, memTotalMib) => {
        const machine = {
          ...MACHINE,
          cores: 100,
          memTotalMib,
          memAvailableMib: memTotalMib - POLICY.memoryReserveMib,
          diskTotalGib: 10_000,
        };
        const offer = allocatableOf(machine, POLICY);
        const inside: HeldVm[] = [];
        let promisedMib = 0;
        for (const memoryMib of asked) {
          if (promisedMib + memoryMib <= offer.memoryMib) {
            assert.equal(shortageFor({ ...VM, memoryMib }, inside, machine, POLICY), null);
            inside.push({ holds: 'growing', reserves: { ...VM, memoryMib } });
            promisedMib += memoryMib;
          }
        }
      }),
    );
  });

  it('offers no memory that other processes use, and counts the VMs in creation', () => {
    const machine = { ...MACHINE, memTotalMib: 20_000, memAvailableMib: 3_000 };
    const offered = (vms: HeldVm[]): number => allocatableOf(machine, { ...POLICY, vmOverheadMib: 0 }, vms).memoryMib;
    assert.equal(offered([]), 3_000);
    assert.equal(offered([{ holds: 'using', reserves: VM }]), VM.memoryMib + 3_000);
    assert.equal(offered([{ holds: 'growing', reserves: VM }]), 3_000);
    assert.equal(offered([{ holds: 'disk', reserves: VM }]), 3_000);
  });

  it('admits VMs that fit', () => {
    assert.equal(shortageFor(VM, held(2), MACHINE, POLICY), null);
  });

  it('names a shortage of vCPUs', () => {
    const wanted = { ...VM, vcpu: 3 };
    assert.deepEqual(shortageFor(wanted, held(2, 'using', { ...VM, memoryMib: 1 }), MACHINE, POLICY), {
      resource: 'vcpu',
      requested: 3,
      available: 2,
    });
  });

  it('names a shortage of memory, counting the overhead of each VM', () => {
    assert.deepEqual(shortageFor(VM, held(3), MACHINE, POLICY), {
      resource: 'memoryMib',
      requested: 1_000,
      available: 600,
    });
  });

  it('names memory that the kernel lacks although less is promised', () => {
    assert.deepEqual(shortageFor(VM, [], { ...MACHINE, memAvailableMib: 900 }, POLICY), {
      resource: 'memoryMib',
      requested: 1_000,
      available: 800,
    });
  });

  it('counts the memory of just admitted VMs as used', () => {
    assert.equal(shortageFor(VM, held(1, 'using'), { ...MACHINE, memAvailableMib: 1_200 }, POLICY), null);
    assert.deepEqual(shortageFor(VM, held(1, 'growing'), { ...MACHINE, memAvailableMib: 1_200 }, POLICY), {
      resource: 'memoryMib',
      requested: 1_000,
      available: 0,
    });
  });

  it('overcommits memory as configured, and never beyond what the kernel has', () => {
    const twice = { ...POLICY, cpuOvercommit: 8, memoryOvercommit: 2 };
    assert.equal(capacityOf(MACHINE, twice).memoryMib, 8_000);
    assert.equal(shortageFor(VM, held(6), MACHINE, twice), null);
    assert.equal(shortageFor(VM, held(6), { ...MACHINE, memAvailableMib: 1_000 }, twice)?.resource, 'memoryMib');
  });

  it('lets a running VM grow into the rest without a second overhead, and counts it while growing', () => {
    const more = { vcpu: 1, memoryMib: 700, diskGib: 0 };
    assert.equal(shortageFor(more, held(3), MACHINE, POLICY, 'added'), null);
    const growing: HeldVm[] = [...held(3), { holds: 'added', reserves: more }];
    assert.deepEqual(promisedTo(growing, POLICY), { vcpu: 4, memoryMib: 4_000, diskGib: 30 });
    assert.equal(
      shortageFor({ ...more, vcpu: 0, memoryMib: 1 }, growing, MACHINE, POLICY, 'added')?.resource,
      'memoryMib',
    );
    assert.equal(shortageFor(more, held(1), { ...MACHINE, memAvailableMib: 600 }, POLICY, 'added')?.available, 600);
  });

  it('finds no shortage for an empty request', () => {
    assert.equal(
      shortageFor({ vcpu: 0, memoryMib: 0, diskGib: 0 }, held(30), { ...MACHINE, diskFreeGib: 0 }, POLICY, 'added'),
      null,
    );
  });

  it('reports the largest possible VM, by host and by driver', () => {
    const driver = { vcpu: 8, memoryMib: 3_000, diskGib: 500 };
    assert.deepEqual(largestOf(MACHINE, POLICY, driver), { vcpu: 4, memoryMib: 3_000, diskGib: 198 });
    assert.equal(largestOf(MACHINE, POLICY, { ...driver, memoryMib: 65_536 }).memoryMib, 3_900);
  });

  it('names a shortage of disk, promised or real', () => {
    const wanted = { ...VM, diskGib: 150 };
    assert.deepEqual(shortageFor(wanted, held(6, 'disk'), MACHINE, POLICY), {
      resource: 'diskGib',
      requested: 150,
      available: 140,
    });
    assert.deepEqual(shortageFor(VM, [], { ...MACHINE, diskFreeGib: 10 }, POLICY), {
      resource: 'diskGib',
      requested: 10,
      available: 0,
    });
  });

  it('reserves disk space for the disk and for a snapshot of the whole memory', () => {
    const size = { vcpu: 1, memoryMib: 1_536, diskGib: 10 };
    assert.deepEqual(reservationOf(size), { ...size, diskGib: 13 });
    const larger = { vcpu: 2, memoryMib: 4_096, diskGib: 20 };
    assert.deepEqual(growthOf(size, larger), { vcpu: 1, memoryMib: 2_560, diskGib: 12 });
    assert.deepEqual(growthOf(larger, size), { vcpu: 0, memoryMib: 0, diskGib: 0 });
  });

  it('promises no disk space that others than VMs take', () => {
    assert.equal(capacityOf({ ...MACHINE, diskOthersGib: 40 }, POLICY).diskGib, 120);
    assert.equal(capacityOf({ ...MACHINE, diskOthersGib: 109 }, POLICY).diskGib, 0);
  });

  it('tells the files of VMs from those of others', async (context) => {
    const folder = await mkdtemp(join(tmpdir(), 'berth-admission-'));
    context.after(() => rm(folder, { recursive: true }));
    const written = 256 * 2 ** 20;
    await mkdir(join(folder, 'a', 'vm'), { recursive: true });
    execFileSync('fallocate', ['--length', String(written), join(folder, 'a', 'vm', 'disk')]);
    const others = (ids: string[]): number =>
      readHost(
        folder,
        ids.map((id) => join(folder, id)),
      ).diskOthersGib;
    // Others write meanwhile, but hardly as much.
    assert.ok(Math.abs(others([]) - others(['a', 'absent']) - 0.25) < 0.1);
  });

  it('counts only the disk of a dead VM', () => {
    assert.deepEqual(promisedTo(held(2, 'disk'), POLICY), { vcpu: 0, memoryMib: 0, diskGib: 20 });
  });

  it('never promises more than there is, in any order of requests', () => {
    const size = fc.record({
      vcpu: fc.integer({ min: 1, max: 8 }),
      memoryMib: fc.integer({ min: 1, max: 4_000 }),
      diskGib: fc.integer({ min: 1, max: 80 }),
    });
    fc.assert(
      fc.property(fc.array(size, { maxLength: 30 }), (asked) => {
        const inside: HeldVm[] = [];
        for (const wanted of asked) {
          const shortage = shortageFor(wanted, inside, MACHINE, POLICY);
          if (shortage === null) {
            inside.push({ holds: 'using', reserves: wanted });
          } else {
            assert.ok(shortage.available < shortage.requested);
            const { resource, available } = shortage;
            // The reported amount is available, as far as this resource is concerned.
            const less =
              available === 0
                ? null
                : shortageFor({ vcpu: 0, memoryMib: 0, diskGib: 0, [resource]: available }, inside, MACHINE, POLICY);
            assert.notEqual(less?.resource, resource);
          }
        }
        const [promised, capacity] = [promisedTo(inside, POLICY), capacityOf(MACHINE, POLICY)];
        assert.ok(
          promised.vcpu <= capacity.vcpu &&
            promised.memoryMib <= capacity.memoryMib &&
            promised.diskGib <= capacity.diskGib,
        );
      }),
    );
  });

  it('reads the figures of this host, and refuses to guess missing ones', () => {
    const machine = readHost(tmpdir(), []);
    assert.ok(machine.cores >= 1 && machine.memTotalMib >= machine.memAvailableMib && machine.memAvailableMib > 0);
    assert.ok(machine.diskTotalGib >= machine.diskFreeGib && machine.diskTotalGib > 0);
    assert.deepEqual(parseMeminfo('MemTotal:        2048 kB\nMemFree: 1 kB\nMemAvailable:    1024 kB\n'), {
      memTotalMib: 2,
      memAvailableMib: 1,
    });
    assert.throws(() => parseMeminfo('MemTotal: 2048 kB\n'), /MemAvailable/);
  });
});
