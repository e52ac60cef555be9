import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { vmToClaim, nextStep, type PoolStep, type PoolView, type WaitingVm } from '../../src/pool/step.ts';

const PACE = { atOnce: 1, quietMs: 300, exerciseAfterMs: 60_000 };
const NOW = 1_000_000;

function waiting(...agesMs: number[]): WaitingVm[] {
  return agesMs.map((ageMs, index) => ({ id: `m${index}`, exercisedAtMs: NOW - ageMs }));
}

function view(differences: Partial<PoolView>): PoolView {
  return {
    nowMs: NOW,
    target: 2,
    room: 100,
    ready: [],
    making: 0,
    exercising: 0,
    underWay: 0,
    quietSinceMs: -Infinity,
    makeFromMs: -Infinity,
    ...differences,
  };
}

describe('the next step of the pool', () => {
  const cases: [string, Partial<PoolView>, PoolStep][] = [
    ['makes a machine when one is missing', {}, { do: 'make' }],
    ['makes no more at once than its pace allows', { making: 1 }, { do: 'wait', untilMs: Infinity }],
    ['makes nothing while a create is under way', { underWay: 1 }, { do: 'wait', untilMs: Infinity }],
    [
      'makes nothing until it has been quiet for a while',
      { quietSinceMs: NOW - 100 },
      { do: 'wait', untilMs: NOW + 200 },
    ],
    [
      'makes nothing for which memory has no room',
      { room: 1, ready: waiting(10) },
      { do: 'wait', untilMs: NOW - 10 + 60_000 },
    ],
    ['makes nothing during a pause', { makeFromMs: NOW + 50 }, { do: 'wait', untilMs: NOW + 50 }],
    [
      'waits for the next exercise when there are enough',
      { ready: waiting(10, 500) },
      { do: 'wait', untilMs: NOW - 500 + 60_000 },
    ],
    ['exercises the one that waited longest', { ready: waiting(60_000, 61_000) }, { do: 'exercise', id: 'm1' }],
    ['exercises one at a time', { ready: waiting(61_000), exercising: 1 }, { do: 'wait', untilMs: Infinity }],
    ['makes what is missing before it exercises', { ready: waiting(61_000) }, { do: 'make' }],
    [
      'exercises nothing while a create is under way',
      { ready: waiting(61_000, 1), underWay: 2 },
      { do: 'wait', untilMs: Infinity },
    ],
    [
      'ends the one that waited longest when fewer are asked for',
      { target: 1, ready: waiting(5, 9) },
      { do: 'end', id: 'm1', why: 'fewer are asked for' },
    ],
    [
      'ends none for want of demand while a create is under way',
      { target: 0, ready: waiting(5), underWay: 1 },
      { do: 'wait', untilMs: Infinity },
    ],
    [
      'ends machines when memory is short, also while a create is under way',
      { room: 1, ready: waiting(5, 9), underWay: 1 },
      { do: 'end', id: 'm1', why: 'memory is short' },
    ],
    [
      'ends a waiting one for one that is being made when memory is short',
      { room: 1, ready: waiting(5), making: 1 },
      { do: 'end', id: 'm0', why: 'memory is short' },
    ],
    [
      'waits while none of those beyond the room can be ended yet',
      { room: 0, making: 1 },
      { do: 'wait', untilMs: Infinity },
    ],
  ];
  for (const [title, differences, step] of cases)
    it(title, () => assert.deepEqual(nextStep(view(differences), PACE), step));

  const views: fc.Arbitrary<PoolView> = fc.record({
    nowMs: fc.constant(NOW),
    target: fc.nat(6),
    room: fc.nat(8),
    ready: fc.array(fc.nat(120_000), { maxLength: 8 }).map((ages) => waiting(...ages)),
    making: fc.nat(2),
    exercising: fc.nat(1),
    underWay: fc.nat(2),
    quietSinceMs: fc.nat(1_000).map((ms) => NOW - ms),
    makeFromMs: fc.integer({ min: -100, max: 100 }).map((ms) => NOW + ms),
  });

  it('uses the CPU only while no caller waits for a VM, and memory only where there is room', () => {
    fc.assert(
      fc.property(views, (seen) => {
        const step = nextStep(seen, PACE);
        const count = seen.ready.length + seen.making + seen.exercising;
        if (step.do === 'make' || step.do === 'exercise') {
          assert.equal(seen.underWay, 0);
          assert.ok(NOW >= seen.quietSinceMs + PACE.quietMs);
        }
        if (step.do === 'make') assert.ok(count < seen.room && count < seen.target && seen.making < PACE.atOnce);

        if (step.do === 'wait') assert.ok(step.untilMs > NOW, 'a wait that is over at once would turn for ever');

        if (count > seen.room && seen.ready.length > 0) assert.ok(step.do === 'end' && step.why === 'memory is short');
      }),
    );
  });

  it('settles at the target when nothing else changes', () => {
    fc.assert(
      fc.property(views, (start) => {
        let seen: PoolView = {
          ...start,
          underWay: 0,
          quietSinceMs: -Infinity,
          makeFromMs: -Infinity,
          making: 0,
          exercising: 0,
        };
        for (let steps = 0; ; steps += 1) {
          assert.ok(steps < 100, 'it does not come to rest');
          const step = nextStep(seen, PACE);
          if (step.do === 'wait') break;

          const others = seen.ready.filter((machine) => step.do === 'make' || machine.id !== step.id);
          const fresh = { id: `made-${steps}`, exercisedAtMs: NOW };
          seen = { ...seen, ready: step.do === 'end' ? others : [...others, fresh] };
        }
        assert.equal(seen.ready.length, Math.min(start.target, start.room));
      }),
    );
  });
});

describe('a claim', () => {
  it('gets the VM exercised last, or none from an empty pool', () => {
    assert.equal(vmToClaim(waiting(300, 20, 100))?.id, 'm1');
    assert.equal(vmToClaim([]), null);
  });
});
