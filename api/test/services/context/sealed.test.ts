// Sealed text opens unchanged, and nothing else opens.
import assert from 'node:assert/strict';
import { createCipheriv, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { UnsealError, openText, sealText } from '../../../src/services/context/sealed.ts';
import { SecretKey, type DerivedKeys } from '../../../src/services/context/secret-key.ts';

const KEY = keysOf(randomBytes(32));
const OWNER = 'prj_aaaaaaaaaaaaaaaaaaaaaaaa';
/** Arbitrary text, including characters beyond the BMP, NUL and combining ones. */
const anyText = fc.oneof(fc.string({ unit: 'binary', maxLength: 300 }), fc.string({ unit: 'grapheme' }));
const anyOwner = fc.string({ unit: 'binary' });
const anyKey = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => keysOf(Buffer.from(bytes)));

function keysOf(...masters: [Buffer, ...Buffer[]]): DerivedKeys {
  return new SecretKey(...masters).keysFor('repo-credentials');
}

/** Both messages name the owner and the variable, and no secret. */
function assertDoesNotOpen(keys: DerivedKeys, owner: string, sealed: Buffer): void {
  assert.throws(
    () => openText(keys, owner, sealed),
    (error) => {
      assert.ok(error instanceof UnsealError);
      const altered = 'it was altered, or encrypted for another owner or with another secret key';
      const id = sealed.toString('hex', 1, 5);
      const missing = `the secret key has no line with the id ${id}. Add that key below the current one`;
      const named = sealed[0] === 2 && sealed.length >= 33 && !keys.some((key) => key.id.toString('hex') === id);
      assert.equal(error.message, `cannot decrypt a secret of ${owner}: ${named ? missing : altered}`);
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

test('any flipped bit prevents opening', () => {
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
      fc.pre(!key[0].key.equals(otherKey[0].key) && owner !== otherOwner);
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
  for (const version of [0, 1, 255])
    assertDoesNotOpen(KEY, OWNER, Buffer.concat([Buffer.of(version), sealed.subarray(1)]));
  fc.assert(fc.property(fc.uint8Array(), (bytes) => assertDoesNotOpen(KEY, OWNER, Buffer.from(bytes))));
});

test('a sealed value starts with version and key id, reveals only the length, and differs each time', () => {
  const text = 'ghp_0123456789abcdefghijklmnopqrst';
  const seals = Array.from({ length: 200 }, () => sealText(KEY, OWNER, text));
  for (const sealed of seals) {
    assert.equal(sealed[0], 2);
    assert.deepEqual(sealed.subarray(1, 5), KEY[0].id);
    assert.equal(sealed.length, 1 + 4 + 12 + text.length + 16);
    for (let from = 0; from + 6 <= text.length; from += 1)
      assert.equal(sealed.includes(text.slice(from, from + 6)), false);
  }
  assert.equal(
    new Set(seals.map((sealed) => sealed.toString('hex', 5, 17))).size,
    seals.length,
    'a nonce was used twice',
  );
});

test('text that cannot round-trip is not sealed', () => {
  assert.throws(() => sealText(KEY, OWNER, 'a\ud800b'), /^TypeError: text with lone surrogates cannot be encrypted$/);
});

test('keys of other purposes or installations do not open a value', () => {
  const master = randomBytes(32);
  const sealed = sealText(new SecretKey(master).keysFor('repo-credentials'), OWNER, 'a token');
  assert.equal(openText(new SecretKey(Buffer.from(master)).keysFor('repo-credentials'), OWNER, sealed), 'a token');
  assertDoesNotOpen(new SecretKey(master).keysFor('preview-link'), OWNER, sealed);
  assertDoesNotOpen(new SecretKey(randomBytes(32)).keysFor('repo-credentials'), OWNER, sealed);
});

test('former keys open values; the current key seals them', () => {
  const [first, second, third] = [randomBytes(32), randomBytes(32), randomBytes(32)];
  const sealed = sealText(keysOf(first), OWNER, 'a token');
  assert.equal(openText(keysOf(second, third, first), OWNER, sealed), 'a token');
  assertDoesNotOpen(keysOf(second, third), OWNER, sealed);
  assert.equal(openText(keysOf(second), OWNER, sealText(keysOf(second, first), OWNER, 'x')), 'x');
});

test('values of version 1, which name no key, open with any of the keys', () => {
  const [current, former] = [randomBytes(32), randomBytes(32)];
  const cipher = createCipheriv('aes-256-gcm', keysOf(former)[0].key, Buffer.alloc(12, 7));
  cipher.setAAD(Buffer.from(OWNER));
  const text = [cipher.update('a token', 'utf8'), cipher.final()];
  const old = Buffer.concat([Buffer.of(1), Buffer.alloc(12, 7), ...text, cipher.getAuthTag()]);
  assert.equal(openText(keysOf(current, former), OWNER, old), 'a token');
  assertDoesNotOpen(keysOf(current), OWNER, old);
});

test('a secret key discloses its id only, and equal keys are refused', () => {
  const master = randomBytes(32);
  const key = new SecretKey(master);
  assert.match(key.ids.join(), /^[0-9a-f]{8}$/);
  assert.equal(JSON.stringify({ key }), '{"key":"[secret key]"}');
  assert.throws(() => new SecretKey(master, randomBytes(32), master), /^Error: two secret keys have the same id$/);
  assert.throws(() => new SecretKey(master, randomBytes(16)), /at least 32 bytes long on one line, not 16$/);
});
