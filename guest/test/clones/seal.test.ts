// Sealing: only the keeper of a key opens boxes sealed to it, and gets the original secret.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { newSecretKey, sealSecret, type SealedSecret } from '../../src/clones/seal.ts';
import { CLONE_BOX_LENGTH, CLONE_KEY, CLONE_SECRET_LENGTH } from '@berth/protocol/guest-limits.ts';

const SECRET = { username: 'watched-for-user', token: 'WatchedForEverywhere' };

test('a sealed text opens unchanged with its key, and reveals nothing', () => {
  const { key, open } = newSecretKey();
  assert.match(key, CLONE_KEY);
  const text = fc.string({ minLength: 1, unit: 'grapheme' });
  fc.assert(
    fc.property(text, text, (username, token) => {
      const sealed = sealSecret(key, { username, token });
      assert.equal(sealed.key, key);
      assert.match(sealed.sender, CLONE_KEY);
      assert.deepEqual(open(sealed), { username, token });
    }),
    { numRuns: 50 },
  );
  assert.doesNotMatch(Buffer.from(sealSecret(key, SECRET).box, 'base64').toString('latin1'), /WatchedFor|watched/);
});

test('the longest credentials fit into the longest box, in any encoding', () => {
  const longest = '\u0001'.repeat(CLONE_SECRET_LENGTH);
  assert.ok(sealSecret(newSecretKey().key, { username: longest, token: longest }).box.length <= CLONE_BOX_LENGTH);
});

test('a box of another key or sender, or with a changed byte, does not open', () => {
  const { key, open } = newSecretKey();
  const sealed = sealSecret(key, SECRET);
  const bytes = Buffer.from(sealed.box, 'base64');
  bytes[0] = (bytes[0] ?? 0) ^ 1;
  const wrong: SealedSecret[] = [
    sealSecret(newSecretKey().key, SECRET),
    { ...sealed, sender: sealSecret(key, SECRET).sender },
    { ...sealed, box: bytes.toString('base64') },
    { ...sealed, box: '' },
  ];
  for (const each of wrong) assert.throws(() => open(each));
  assert.deepEqual(open(sealed), SECRET);
});

test('sealing to an invalid key fails', () => {
  // The last key is a low-order point: its shared secret is the same for all parties.
  const low = Buffer.concat([Buffer.from(newSecretKey().key, 'base64').subarray(0, 12), Buffer.alloc(32)]).toString(
    'base64',
  );
  for (const key of ['', 'A'.repeat(59) + '=', low]) assert.throws(() => sealSecret(key, SECRET), key);
});
