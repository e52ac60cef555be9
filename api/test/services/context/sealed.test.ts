// Sealed text opens unchanged, and nothing else opens.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { UnsealError, openText, sealText } from '../../../src/services/context/sealed.ts';
import { SecretKey } from '../../../src/services/context/secret-key.ts';

const KEY = randomBytes(32);
const OWNER = 'prj_aaaaaaaaaaaaaaaaaaaaaaaa';
/** Arbitrary text, including characters beyond the BMP, NUL and combining ones. */
const anyText = fc.oneof(fc.string({ unit: 'binary', maxLength: 300 }), fc.string({ unit: 'grapheme' }));
const anyOwner = fc.string({ unit: 'binary' });
const anyKey = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes));

function assertDoesNotOpen(key: Buffer, owner: string, sealed: Buffer): void {
  assert.throws(
    () => openText(key, owner, sealed),
    (error) => {
      assert.ok(error instanceof UnsealError);
      assert.equal(
        error.message,
        `cannot decrypt a secret of ${owner}: ` +
          'it was altered, or encrypted for another owner or with another key than BERTH_SECRET_KEY_FILE',
      );
      return true;
    },
  );
}

test('any text opens unchanged for its owner with its key', () => {
  fc.assert(
    fc.property(
      anyKey,
      anyOwner,
      anyText,
      (key, owner, text) => openText(key, owner, sealText(key, owner, text)) === text,
    ),
  );
});

test('the longest text, an empty one and one that looks sealed open unchanged', () => {
  for (const text of ['', 'x'.repeat(100_000), '\u0001'.repeat(29), '💡\0\u2028'])
    assert.equal(openText(KEY, OWNER, sealText(KEY, OWNER, text)), text);
});

test('any flipped bit prevents opening, always with the same error', () => {
  fc.assert(
    fc.property(anyText, fc.nat(), (text, place) => {
      const sealed = sealText(KEY, OWNER, text);
      const bit = place % (sealed.length * 8);
      sealed[bit >> 3]! ^= 1 << (bit & 7);
      assertDoesNotOpen(KEY, OWNER, sealed);
    }),
  );
  const sealed = sealText(KEY, OWNER, 'every bit of this one');
  for (let bit = 0; bit < sealed.length * 8; bit += 1) {
    const altered = Buffer.from(sealed);
    altered[bit >> 3]! ^= 1 << (bit & 7);
    assertDoesNotOpen(KEY, OWNER, altered);
  }
});

test('another key, or another owner, does not open a sealed value', () => {
  fc.assert(
    fc.property(anyKey, anyKey, anyOwner, anyOwner, anyText, (key, otherKey, owner, otherOwner, text) => {
      fc.pre(!key.equals(otherKey) && owner !== otherOwner);
      const sealed = sealText(key, owner, text);
      assertDoesNotOpen(otherKey, owner, sealed);
      assertDoesNotOpen(key, otherOwner, sealed);
    }),
  );
});

test('truncated, extended, empty, other-version and unsealed values do not open', () => {
  const sealed = sealText(KEY, OWNER, 'a token');
  for (let length = 0; length < sealed.length; length += 1) assertDoesNotOpen(KEY, OWNER, sealed.subarray(0, length));
  assertDoesNotOpen(KEY, OWNER, Buffer.concat([sealed, Buffer.of(0)]));
  for (const version of [0, 2, 255])
    assertDoesNotOpen(KEY, OWNER, Buffer.concat([Buffer.of(version), sealed.subarray(1)]));
  fc.assert(fc.property(fc.uint8Array(), (bytes) => assertDoesNotOpen(KEY, OWNER, Buffer.from(bytes))));
});

test('a sealed value starts with its version, reveals only the length, and differs each time', () => {
  const text = 'ghp_0123456789abcdefghijklmnopqrst';
  const seals = Array.from({ length: 200 }, () => sealText(KEY, OWNER, text));
  for (const sealed of seals) {
    assert.equal(sealed[0], 1);
    assert.equal(sealed.length, 1 + 12 + text.length + 16);
    for (let from = 0; from + 6 <= text.length; from += 1)
      assert.equal(sealed.includes(text.slice(from, from + 6)), false);
  }
  assert.equal(
    new Set(seals.map((sealed) => sealed.toString('hex', 1, 13))).size,
    seals.length,
    'a nonce was used twice',
  );
});

test('text that cannot round-trip is not sealed', () => {
  assert.throws(() => sealText(KEY, OWNER, 'a\ud800b'), /^TypeError: text with lone surrogates cannot be encrypted$/);
});

test('keys of other purposes or installations do not open a value', () => {
  const master = randomBytes(32);
  const sealed = sealText(new SecretKey(master).derive('repo-credentials'), OWNER, 'a token');
  assert.equal(openText(new SecretKey(Buffer.from(master)).derive('repo-credentials'), OWNER, sealed), 'a token');
  assertDoesNotOpen(new SecretKey(master).derive('preview-link'), OWNER, sealed);
  assertDoesNotOpen(new SecretKey(randomBytes(32)).derive('repo-credentials'), OWNER, sealed);
});
