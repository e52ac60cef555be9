// Arithmetic of attempts, and their keys.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  accountKey,
  addressKey,
  bucketOf,
  domainKey,
  LONGEST_REFILL_SECONDS,
  refilled,
  secondsUntilTry,
  THROTTLES,
  userKey,
  type Bucket,
} from '../../../src/rules/access/throttle.ts';

const bucket: fc.Arbitrary<Bucket> = fc.record({
  tries: fc.integer({ min: 1, max: 100 }),
  seconds: fc.integer({ min: 1, max: 7_200 }),
});
const seconds = fc.double({ min: 0, max: 10_000, noNaN: true });
/** Equal up to rounding. */
const close = (a: number, b: number): boolean => Math.abs(a - b) < 1e-6;

test('a bucket never exceeds its size and never loses attempts by waiting', () => {
  fc.assert(
    fc.property(bucket, fc.double({ min: 0, max: 1, noNaN: true }), seconds, (size, share, elapsed) => {
      const tokens = share * size.tries;
      const after = refilled(tokens, elapsed, size);
      return after <= size.tries && after >= tokens;
    }),
  );
});

test('waiting in parts refills as much as waiting at once', () => {
  fc.assert(
    fc.property(bucket, fc.double({ min: 0, max: 1, noNaN: true }), seconds, seconds, (size, share, first, then) => {
      const tokens = share * size.tries;
      return close(refilled(refilled(tokens, first, size), then, size), refilled(tokens, first + then, size));
    }),
  );
});

test('a clock set back changes nothing', () => {
  fc.assert(fc.property(bucket, seconds, (size, back) => refilled(0.5, -back, size) === 0.5));
});

test('an empty bucket is full exactly after its refill time', () => {
  fc.assert(
    fc.property(bucket, fc.double({ min: 0, max: 0.99, noNaN: true }), (size, share) => {
      return close(refilled(0, size.seconds, size), size.tries) && refilled(0, share * size.seconds, size) < size.tries;
    }),
  );
});

test('an attempt is available after the reported time, and not a second before', () => {
  fc.assert(
    fc.property(bucket, fc.double({ min: 0, max: 0.999, noNaN: true }), (size, tokens) => {
      const wait = secondsUntilTry(tokens, size);
      assert.ok(wait >= 1);
      // The capacity itself limits a bucket of one attempt.
      return refilled(tokens, wait, size) > 1 - 1e-6 && (wait === 1 || refilled(tokens, wait - 1, size) < 1);
    }),
  );
  assert.equal(secondsUntilTry(1, { tries: 3, seconds: 60 }), 0);
});

test('subdomains share the bucket of their registrable domain', () => {
  for (const [domain, key] of [
    ['example.com', 'example.com'],
    ['A.b.Example.com ', 'example.com'],
    ['example.com.', 'example.com'],
    ['a.example.co.uk', 'example.co.uk'],
    ['b.other.co.uk', 'other.co.uk'],
    // Subdomains are free at a suffix that is no registry's.
    ['a.duckdns.org', 'duckdns.org'],
    ['[192.0.2.1]', '[192.0.2.1]'],
    ['co.uk', 'co.uk'],
    ['localhost', 'localhost'],
  ] as const)
    assert.equal(domainKey(`x@y@${domain}`), `domain:${key}`, domain);
});

test('constant attempts get at most the bucket and its refill in any window', () => {
  fc.assert(
    fc.property(bucket, fc.array(fc.double({ min: 0, max: 100, noNaN: true }), { maxLength: 200 }), (size, waits) => {
      let tokens = size.tries;
      let taken = 0;
      let elapsed = 0;
      for (const wait of waits) {
        elapsed += wait;
        tokens = refilled(tokens, wait, size);
        if (tokens < 1) continue;
        tokens -= 1;
        taken += 1;
      }
      return taken <= size.tries + (elapsed * size.tries) / size.seconds + 1e-6;
    }),
  );
});

test('no bucket takes longer to fill than its row is kept', () => {
  const all = Object.values(THROTTLES).flatMap((scopes) => Object.values<Bucket>(scopes));
  assert.ok(all.every((size) => size.seconds <= LONGEST_REFILL_SECONDS && size.tries >= 1));
});

test('an account is one key, whatever the case of its address; kinds have separate scopes', () => {
  assert.equal(accountKey(' Pat@Example.test '), accountKey('pat@example.test'));
  assert.deepEqual(bucketOf('sign-in', accountKey('x')), { tries: 10, seconds: 900 });
  assert.deepEqual(bucketOf('sign-in', addressKey('192.0.2.1')), { tries: 50, seconds: 900 });
  assert.deepEqual(bucketOf('device-code', userKey('usr_x')), { tries: 20, seconds: 900 });
  assert.equal(bucketOf('sign-up', accountKey('x')), undefined);
});

test('an IPv6 address is counted by its /64 network, whatever its notation', () => {
  const group = fc.integer({ min: 0, max: 0xffff });
  const groups = fc.tuple(group, group, group, group, group, group, group, group);
  const plain = (parts: number[]): string => parts.map((part) => part.toString(16)).join(':');
  const long = (parts: number[]): string =>
    parts.map((part) => part.toString(16).padStart(4, '0').toUpperCase()).join(':');
  fc.assert(
    fc.property(groups, groups, (a, b) => {
      const neighbour = [...a.slice(0, 4), ...b.slice(4)];
      assert.equal(addressKey(plain(a)), addressKey(long(neighbour)));
      // Compressed notation, without the longest run of zeros.
      assert.equal(addressKey(plain(a)), addressKey(new URL(`http://[${plain(a)}]/`).hostname.slice(1, -1)));
      const same = a.slice(0, 4).every((part, index) => part === b[index]);
      assert.equal(addressKey(plain(a)) === addressKey(plain(b)), same);
    }),
  );
  assert.equal(addressKey('2001:db8::1'), addressKey('2001:db8:0:0:ffff::'));
  assert.equal(addressKey('fe80::1%eth0'), addressKey('fe80::2%eth1'));
});

test('an IPv4 address and its IPv4-mapped form are one key', () => {
  fc.assert(
    fc.property(fc.ipV4(), fc.ipV4(), (a, b) => {
      assert.equal(addressKey(`::ffff:${a}`), addressKey(a));
      assert.equal(addressKey(a) === addressKey(b), a === b);
    }),
  );
});
