import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import {
  decideCreate,
  decideDestroy,
  decideResize,
  decideSleep,
  decideWake,
  type KnownStatus,
  type KnownVm,
} from '../../../src/vm/owned/fencing.ts';
import { SMALL } from '../lifecycle/lifecycle-fixture.ts';

/** `dead-with-disk`: dead after it ran; `dead`: never came up. */
type Case = KnownStatus | 'dead-with-disk';
const CASES: readonly Case[] = [
  'creating',
  'running',
  'resizing',
  'sleeping',
  'asleep',
  'waking',
  'dead',
  'dead-with-disk',
  'destroying',
];
const SIZE = { vcpu: SMALL.vcpu, memoryMib: SMALL.memoryMib, diskGib: SMALL.diskGib };
const LARGER = { ...SIZE, vcpu: SIZE.vcpu + 1 };

/** A VM on record under epoch 5. */
function known(of: Case | null, destroyedEpoch: number | null = null): KnownVm {
  if (of === null) return { record: null, destroyedEpoch };

  const status = of === 'dead-with-disk' ? 'dead' : of;
  return { record: { epoch: 5, spec: SMALL, status, everRan: of !== 'creating' && of !== 'dead' }, destroyedEpoch };
}

function said(verdict: { do: string; code?: string }): string {
  return verdict.do === 'refuse' ? (verdict.code ?? '') : verdict.do;
}

/** Decisions for an older, the same and a newer epoch. */
type Row = [older: string, same: string, newer: string];

const TABLES: Record<
  string,
  { judge: (vm: KnownVm, epoch: number) => { do: string; code?: string }; none: string; rows: Record<Case, Row> }
> = {
  create: {
    judge: (vm, epoch) => decideCreate(vm, epoch, SMALL),
    none: 'start',
    rows: {
      creating: ['stale_epoch', 'join', 'replace'],
      running: ['stale_epoch', 'answer', 'replace'],
      resizing: ['stale_epoch', 'epoch_conflict', 'replace'],
      sleeping: ['stale_epoch', 'epoch_conflict', 'replace'],
      asleep: ['stale_epoch', 'wake', 'replace'],
      waking: ['stale_epoch', 'epoch_conflict', 'replace'],
      dead: ['stale_epoch', 'start', 'replace'],
      'dead-with-disk': ['stale_epoch', 'ran-and-died', 'replace'],
      destroying: ['stale_epoch', 'superseded', 'replace'],
    },
  },
  sleep: {
    judge: decideSleep,
    none: 'vm_not_running',
    rows: {
      creating: ['stale_epoch', 'wait', 'wait'],
      running: ['stale_epoch', 'start', 'start'],
      resizing: ['stale_epoch', 'wait', 'wait'],
      sleeping: ['stale_epoch', 'join', 'wait'],
      asleep: ['stale_epoch', 'answer', 'answer'],
      waking: ['stale_epoch', 'wait', 'wait'],
      dead: ['stale_epoch', 'vm_not_running', 'vm_not_running'],
      'dead-with-disk': ['stale_epoch', 'vm_not_running', 'vm_not_running'],
      destroying: ['stale_epoch', 'superseded', 'superseded'],
    },
  },
  wake: {
    judge: decideWake,
    none: 'nothing_to_wake',
    rows: {
      creating: ['stale_epoch', 'wait', 'wait'],
      running: ['stale_epoch', 'answer', 'answer'],
      resizing: ['stale_epoch', 'wait', 'wait'],
      sleeping: ['stale_epoch', 'wait', 'wait'],
      asleep: ['stale_epoch', 'start', 'start'],
      waking: ['stale_epoch', 'join', 'wait'],
      dead: ['stale_epoch', 'nothing_to_wake', 'nothing_to_wake'],
      'dead-with-disk': ['stale_epoch', 'start', 'start'],
      destroying: ['stale_epoch', 'superseded', 'superseded'],
    },
  },
  resize: {
    judge: (vm, epoch) => decideResize(vm, epoch, LARGER),
    none: 'vm_not_running',
    rows: {
      creating: ['stale_epoch', 'wait', 'wait'],
      running: ['stale_epoch', 'start', 'start'],
      resizing: ['stale_epoch', 'join', 'wait'],
      sleeping: ['stale_epoch', 'wait', 'wait'],
      asleep: ['stale_epoch', 'vm_not_running', 'vm_not_running'],
      waking: ['stale_epoch', 'wait', 'wait'],
      dead: ['stale_epoch', 'vm_not_running', 'vm_not_running'],
      'dead-with-disk': ['stale_epoch', 'vm_not_running', 'vm_not_running'],
      destroying: ['stale_epoch', 'superseded', 'superseded'],
    },
  },
  destroy: {
    judge: decideDestroy,
    none: 'remember',
    rows: Object.fromEntries(CASES.map((of) => [of, ['stale_epoch', 'end', 'end']])) as Record<Case, Row>,
  },
};

for (const [verb, { judge, none, rows }] of Object.entries(TABLES)) {
  describe(`outcome of a ${verb}`, () => {
    for (const of of CASES) {
      it(`of a ${of} VM, under an older, the same and a newer epoch: ${rows[of].join(', ')}`, () => {
        assert.deepEqual(
          [4, 5, 6].map((epoch) => said(judge(known(of), epoch))),
          rows[of],
        );
      });
    }

    it(`of an unknown VM, or one destroyed under an older epoch: ${none}`, () => {
      assert.deepEqual([said(judge(known(null), 1)), said(judge(known(null, 4), 5))], [none, none]);
    });

    it('of a VM destroyed under a newer epoch: stale_epoch', () => {
      assert.equal(said(judge(known(null, 6), 5)), 'stale_epoch');
    });

    if (verb !== 'destroy') {
      it('of a VM destroyed under the same epoch: stale_epoch', () => {
        assert.equal(said(judge(known(null, 5), 5)), 'stale_epoch');
      });
    }
  });
}

describe('a create with the epoch of a VM', () => {
  for (const status of ['creating', 'running', 'dead'] as const) {
    for (const change of [
      { vcpu: 2 },
      { memoryMib: 2_048 },
      { diskGib: 20 },
      { hostname: 'other' },
      { sshAuthorizedKeys: ['ssh-ed25519 A'] },
    ]) {
      it(`in status ${status} with another ${Object.keys(change)[0]} is a conflict`, () => {
        assert.equal(said(decideCreate(known(status), 5, { ...SMALL, ...change })), 'epoch_conflict');
      });
    }
  }
});

describe('a resize of a running VM', () => {
  it('to its current size succeeds', () => {
    assert.deepEqual(
      [5, 6].map((epoch) => said(decideResize(known('running'), epoch, SIZE))),
      ['answer', 'answer'],
    );
  });

  for (const part of ['vcpu', 'memoryMib', 'diskGib'] as const) {
    it(`to less ${part} is refused and names it, even if the rest grows`, () => {
      const verdict = decideResize(known('running'), 6, {
        vcpu: 8,
        memoryMib: 4_096,
        diskGib: 50,
        [part]: SIZE[part] - 1,
      });
      assert.equal(said(verdict), 'invalid_request');
      assert.match(
        verdict.do === 'refuse' ? verdict.message : '',
        new RegExp(`${part} ${SIZE[part] - 1} instead of ${SIZE[part]}`),
      );
    });
  }
});

describe('fencing', () => {
  const status = fc.constantFrom<Case | null>(...CASES, null);
  const epoch = fc.integer({ min: 1, max: 9 });

  it('never lets a stale epoch change anything, for any call', () => {
    fc.assert(
      fc.property(status, fc.option(epoch), epoch, (of, destroyedEpoch, asked) => {
        const vm = known(of, destroyedEpoch);
        const newest = Math.max(vm.record?.epoch ?? 0, destroyedEpoch ?? 0);
        for (const [verb, { judge }] of Object.entries(TABLES)) {
          if (asked < newest) assert.equal(said(judge(vm, asked)), 'stale_epoch', verb);
          else if (verb === 'destroy') assert.notEqual(judge(vm, asked).do, 'refuse');
        }
      }),
    );
  });
});
