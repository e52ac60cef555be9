import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { judgeCreate, judgeDestroy, type KnownVm } from '../../src/vm/fencing.ts';
import { SMALL } from './lifecycle-fixture.ts';

type Status = 'creating' | 'running' | 'dead' | 'destroying';

function known(status: Status | null, options: { epoch?: number; everRan?: boolean; destroyedEpoch?: number } = {}): KnownVm {
  const { epoch = 5, everRan = status === 'running', destroyedEpoch = null } = options;
  return { record: status === null ? null : { epoch, spec: SMALL, status, everRan }, destroyedEpoch };
}

describe('what a create means', () => {
  const cells: [string, KnownVm, number, string][] = [
    ['a VM nobody saw', known(null), 1, 'start'],
    ['one destroyed under the same epoch', known(null, { destroyedEpoch: 5 }), 5, 'stale_epoch'],
    ['one destroyed under a newer epoch', known(null, { destroyedEpoch: 6 }), 5, 'stale_epoch'],
    ['one destroyed under an older epoch', known(null, { destroyedEpoch: 4 }), 5, 'start'],
    ['one under way', known('creating'), 5, 'join'],
    ['one under way with a newer epoch', known('creating'), 4, 'stale_epoch'],
    ['one under way with an older epoch', known('creating'), 6, 'replace'],
    ['one that runs', known('running'), 5, 'answer'],
    ['one that runs with a newer epoch', known('running'), 4, 'stale_epoch'],
    ['one that runs with an older epoch', known('running'), 6, 'replace'],
    ['one that never came up', known('dead'), 5, 'start'],
    ['one that ran and died', known('dead', { everRan: true }), 5, 'came-down'],
    ['one that ran and died under an older epoch', known('dead', { everRan: true }), 6, 'replace'],
    ['one being destroyed', known('destroying'), 5, 'superseded'],
    ['one being destroyed under a newer epoch', known('destroying'), 4, 'stale_epoch'],
    ['one being destroyed under an older epoch', known('destroying'), 6, 'replace'],
  ];
  for (const [what, vm, epoch, expected] of cells) {
    it(`of ${what}: ${expected}`, () => {
      const verdict = judgeCreate(vm, epoch, SMALL);
      assert.equal(verdict.do === 'refuse' ? verdict.code : verdict.do, expected);
    });
  }

  for (const status of ['creating', 'running', 'dead'] as const) {
    for (const change of [
      { vcpu: 2 },
      { memoryMib: 2_048 },
      { diskGib: 20 },
      { hostname: 'other' },
      { sshAuthorizedKeys: ['ssh-ed25519 A'] },
    ]) {
      it(`with the epoch of a ${status} VM and another ${Object.keys(change)[0]} is a conflict`, () => {
        const verdict = judgeCreate(known(status), 5, { ...SMALL, ...change });
        assert.equal(verdict.do === 'refuse' && verdict.code, 'epoch_conflict');
      });
    }
  }
});

describe('what a destroy means', () => {
  for (const status of ['creating', 'running', 'dead', 'destroying'] as const) {
    it(`of a ${status} VM: ended under the same or a newer epoch, refused under an older`, () => {
      assert.deepEqual(
        [5, 6].map((epoch) => judgeDestroy(known(status), epoch).do),
        ['end', 'end'],
      );
      assert.equal(judgeDestroy(known(status), 4).do, 'refuse');
    });
  }

  it('of a VM that is gone or was never here: remembered', () => {
    assert.equal(judgeDestroy(known(null), 1).do, 'remember');
    assert.equal(judgeDestroy(known(null, { destroyedEpoch: 5 }), 5).do, 'remember');
    assert.equal(judgeDestroy(known(null, { destroyedEpoch: 5 }), 4).do, 'refuse');
  });
});

describe('fencing', () => {
  const status = fc.constantFrom<Status | null>('creating', 'running', 'dead', 'destroying', null);
  const epoch = fc.integer({ min: 1, max: 9 });

  it('never lets an epoch older than the newest it saw change anything', () => {
    fc.assert(
      fc.property(status, epoch, fc.option(epoch), fc.boolean(), epoch, (status, recorded, destroyedEpoch, everRan, asked) => {
        const vm: KnownVm = { record: status === null ? null : { epoch: recorded, spec: SMALL, status, everRan }, destroyedEpoch };
        const newest = Math.max(status === null ? 0 : recorded, destroyedEpoch ?? 0);
        if (asked < newest) {
          assert.equal(judgeCreate(vm, asked, SMALL).do, 'refuse');
          assert.equal(judgeDestroy(vm, asked).do, 'refuse');
        } else {
          assert.notEqual(judgeDestroy(vm, asked).do, 'refuse');
        }
        if (asked > newest) {
          assert.ok(['start', 'replace'].includes(judgeCreate(vm, asked, SMALL).do));
        }
      }),
    );
  });
});
