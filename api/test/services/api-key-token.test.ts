// The form of a key's token.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isToken, newToken, tokenPrefix, tokenSha256 } from '../../src/services/api-key-token.ts';

const BASE62 = Array.from('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz');

test('a new token is brt_ and 38 base62 characters, passes its own check, and no two are alike', () => {
  const tokens = Array.from({ length: 2_000 }, newToken);
  for (const token of tokens) {
    assert.match(token, /^brt_[0-9A-Za-z]{38}$/);
    assert.ok(isToken(token));
  }
  assert.equal(new Set(tokens).size, tokens.length);
});

test('every character of base62 occurs about equally often in the random part', () => {
  const counts = new Map<string, number>();
  for (let index = 0; index < 2_000; index += 1)
    for (const character of newToken().slice(4, 36)) counts.set(character, (counts.get(character) ?? 0) + 1);
  // 64,000 draws over 62: 1,032 expected, standard deviation 32; eight of them is out of reach of chance.
  for (const character of BASE62) assert.ok(Math.abs((counts.get(character) ?? 0) - 1_032) < 256, character);
});

test('a token with any one character changed, or cut, or lengthened, fails the check', () => {
  const token = newToken();
  fc.assert(
    fc.property(fc.nat({ max: token.length - 1 }), fc.constantFrom(...BASE62), (at, character) => {
      const changed = token.slice(0, at) + character + token.slice(at + 1);
      assert.equal(isToken(changed), changed === token);
    }),
  );
  fc.assert(fc.property(fc.nat({ max: token.length - 1 }), (length) => assert.equal(isToken(token.slice(0, length)), false)));
  assert.equal(isToken(`${token}a`), false);
  assert.equal(isToken(` ${token}`), false);
});

test('two neighbouring characters swapped fail the check', () => {
  const token = newToken();
  for (let at = 4; at < token.length - 1; at += 1) {
    const swapped = token.slice(0, at) + (token[at + 1] ?? '') + (token[at] ?? '') + token.slice(at + 2);
    assert.equal(isToken(swapped), swapped === token);
  }
});

test('arbitrary text is no token', () => {
  fc.assert(fc.property(fc.string(), (text) => assert.equal(isToken(text), false)));
  fc.assert(fc.property(fc.stringMatching(/^brt_[0-9A-Za-z]{38}$/), (text) => assert.equal(isToken(text), false)));
});

test('what is stored is the SHA-256, and what is shown gives away six random characters', () => {
  const token = newToken();
  assert.equal(tokenSha256(token).byteLength, 32);
  assert.equal(tokenPrefix(token), token.slice(0, 10));
});
