import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { DEMAND_KEPT_MS, poolRoom, poolTarget, WAITING_VM_MIB } from '../../src/pool/target.ts';

const LIMITS = { min: 1, max: 8 };
const NOW = 10_000_000;

function agoMs(...times: number[]): number[] {
  return times.map((ms) => NOW - ms).sort((a, b) => a - b);
}

describe('the target of the pool', () => {
  const cases: {
    title: string;
    createsAtMs: number[];
    refillMs?: number;
    limits?: { min: number; max: number };
    target: number;
  }[] = [
    { title: 'is the minimum while nothing is asked for', createsAtMs: [], target: 1 },
    { title: 'is nothing when the minimum is', createsAtMs: [], limits: { min: 0, max: 8 }, target: 0 },
    { title: 'counts what came at once', createsAtMs: agoMs(5_000, 5_000, 5_000, 5_000), target: 4 },
    {
      title: 'counts what came within the time that filling the pool takes',
      createsAtMs: agoMs(1_000, 8_000, 13_000, 17_000),
      target: 2,
    },
    {
      title: 'counts more when machines take longer to be made',
      createsAtMs: agoMs(1_000, 8_000, 13_000, 17_000),
      refillMs: 2_000,
      target: 4,
    },
    { title: 'takes the busiest span, not the last', createsAtMs: agoMs(300_000, 300_001, 300_002, 10), target: 3 },
    {
      title: 'forgets what is long past',
      createsAtMs: agoMs(DEMAND_KEPT_MS, DEMAND_KEPT_MS, DEMAND_KEPT_MS + 5),
      target: 1,
    },
    {
      title: 'is never more than the maximum',
      createsAtMs: agoMs(...Array.from({ length: 30 }, () => 100)),
      target: 8,
    },
    {
      title: 'is nothing where the maximum is nothing',
      createsAtMs: agoMs(1, 1, 1),
      limits: { min: 0, max: 0 },
      target: 0,
    },
  ];
  for (const { title, createsAtMs, refillMs = 1_000, limits = LIMITS, target } of cases) {
    it(title, () => {
      assert.equal(poolTarget({ createsAtMs, nowMs: NOW, refillMs }, limits), target);
    });
  }

  const creates = fc
    .array(fc.integer({ min: 0, max: DEMAND_KEPT_MS * 2 }), { maxLength: 40 })
    .map((ages) => agoMs(...ages));
  const limits = fc.tuple(fc.nat(10), fc.nat(10)).map(([min, more]) => ({ min, max: min + more }));
  const refill = fc.integer({ min: 1, max: 20_000 });

  it('stays within its limits for any demand', () => {
    fc.assert(
      fc.property(creates, refill, limits, (createsAtMs, refillMs, bounds) => {
        const target = poolTarget({ createsAtMs, nowMs: NOW, refillMs }, bounds);
        assert.ok(target >= bounds.min && target <= bounds.max);
      }),
    );
  });

  it('never falls because of another request', () => {
    fc.assert(
      fc.property(creates, refill, limits, (createsAtMs, refillMs, bounds) => {
        const before = poolTarget({ createsAtMs, nowMs: NOW, refillMs }, bounds);
        assert.ok(poolTarget({ createsAtMs: [...createsAtMs, NOW], nowMs: NOW, refillMs }, bounds) >= before);
      }),
    );
  });

  it('never rises without requests', () => {
    fc.assert(
      fc.property(creates, refill, limits, fc.nat(DEMAND_KEPT_MS), (createsAtMs, refillMs, bounds, laterMs) => {
        const before = poolTarget({ createsAtMs, nowMs: NOW, refillMs }, bounds);
        assert.ok(poolTarget({ createsAtMs, nowMs: NOW + laterMs, refillMs }, bounds) <= before);
      }),
    );
  });

  it('would have had a VM for each create of a repeated burst', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), refill, (burst, refillMs) => {
        const createsAtMs = Array.from({ length: burst }, () => NOW - 1_000);
        assert.equal(poolTarget({ createsAtMs, nowMs: NOW, refillMs }, { min: 0, max: 20 }), burst);
      }),
    );
  });
});

describe('the room for the pool', () => {
  it('is limited by unpromised memory', () => {
    assert.equal(poolRoom(0, { unpromisedMib: 3 * WAITING_VM_MIB + 1, spareMib: 100_000 }), 3);
  });

  it('is the current pool plus what fits beside the reserve', () => {
    assert.equal(poolRoom(2, { unpromisedMib: 100_000, spareMib: WAITING_VM_MIB }), 3);
  });

  it('falls below the current pool as soon as the reserve is touched', () => {
    assert.equal(poolRoom(4, { unpromisedMib: 100_000, spareMib: -1 }), 3);
    assert.equal(poolRoom(4, { unpromisedMib: 100_000, spareMib: -3 * WAITING_VM_MIB }), 1);
  });

  it('is never negative, and zero once everything is promised', () => {
    fc.assert(
      fc.property(
        fc.nat(20),
        fc.integer({ min: -5_000, max: 5_000 }),
        fc.integer({ min: -5_000, max: 5_000 }),
        (count, unpromisedMib, spareMib) => {
          const room = poolRoom(count, { unpromisedMib, spareMib });
          assert.ok(room >= 0);
          assert.ok(unpromisedMib > 0 || room === 0);
          assert.ok(spareMib >= 0 || room < Math.max(1, count));
        },
      ),
    );
  });
});
