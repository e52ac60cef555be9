// Shares of the bytes in flight.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { BytesInFlight, type HeldBytes } from '../../src/call/bytes-in-flight.ts';
import { CodedError } from '../../src/rules/coded-error.ts';

const MIB = 1_048_576;

/** Adds as long as allowed, a MiB at a time; returns the number of MiB. */
function fill(held: HeldBytes): number {
  for (let count = 0; ; count += 1) {
    try {
      held.add(MIB);
    } catch (error) {
      assert.ok(error instanceof CodedError);
      assert.deepEqual([error.code, error.retryAfterSeconds], ['too_much_in_flight', 1]);
      return count;
    }
  }
}

test('each org may hold half of what the others leave', () => {
  const inFlight = new BytesInFlight(128);
  const orgs = ['a', 'b', 'c', 'd'].map((orgId, index) => inFlight.open({ orgId, address: `192.0.2.${index}` }));
  assert.deepEqual(orgs.map(fill), [64, 32, 16, 8]);
  orgs[0]?.release();
  assert.equal(fill(inFlight.open({ orgId: 'e', address: '192.0.2.9' })), 36);
});

test('an org has one share, with however many requests and addresses', () => {
  const inFlight = new BytesInFlight(128);
  const filled = [1, 2, 3].map((host) => fill(inFlight.open({ orgId: 'a', address: `192.0.2.${host}` })));
  assert.deepEqual(filled, [64, 0, 0]);
});

test('an address may hold three quarters with orgs, and half without', () => {
  const inFlight = new BytesInFlight(128);
  const of = (orgId: string): number => fill(inFlight.open({ orgId, address: '192.0.2.1' }));
  assert.deepEqual([of('a'), of('b'), of('c')], [64, 32, 0]);
  assert.equal(fill(inFlight.open({ address: '192.0.2.1' })), 0);
  assert.equal(fill(inFlight.open({ address: '192.0.2.2' })), 16);
  // The whole /64 network is one address.
  const anonymous = new BytesInFlight(128);
  const at = (address: string): number => fill(anonymous.open({ address }));
  assert.deepEqual([at('2001:db8::1'), at('2001:db8::2'), at('2001:db8:0:1::1')], [64, 0, 32]);
});

test('the refusal names share, limit and setting', () => {
  const held = new BytesInFlight(32).open({ orgId: 'a', address: '192.0.2.1' });
  assert.throws(
    () => held.add(17 * MIB),
    new CodedError(
      'too_much_in_flight',
      'too many bytes in flight: the bodies of this org may take 50 % of what others leave of 32 MiB ' +
        '(BERTH_BODIES_IN_FLIGHT_MIB); retry in 1 s',
      { retryAfterSeconds: 1 },
    ),
  );
});

test('any sequence of holds stays within the limit and gives everything back', () => {
  const steps = fc.array(
    fc.record({
      org: fc.option(fc.constantFrom('a', 'b', 'c'), { nil: undefined }),
      host: fc.integer({ min: 1, max: 3 }),
      bytes: fc.integer({ min: 1, max: 40 * MIB }),
      releases: fc.boolean(),
    }),
  );
  fc.assert(
    fc.property(steps, (sequence) => {
      const inFlight = new BytesInFlight(64);
      const open: HeldBytes[] = [];
      for (const { org, host, bytes, releases } of sequence) {
        const held = inFlight.open({ orgId: org, address: `192.0.2.${host}` });
        open.push(held);
        try {
          held.add(bytes);
        } catch (error) {
          assert.ok(error instanceof CodedError);
        }
        if (releases) open.shift()?.release();
        assert.ok(inFlight.held >= 0 && inFlight.held <= 64 * MIB);
      }
      // Twice, as after a failure.
      for (const held of [...open, ...open]) held.release();
      assert.equal(inFlight.held, 0);
    }),
  );
});
