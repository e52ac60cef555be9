// The form of bearer tokens.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AUTH_KINDS } from '@berth/contract/route/route.ts';
import fc from 'fast-check';
import {
  newToken,
  TOKEN_PREFIXES,
  tokenKind,
  tokenPrefix,
  tokenSha256,
} from '../../../src/services/access/bearer-token.ts';

const BASE62 = Array.from('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz');

test('a new token is brt_ and 38 base62 characters, passes its own check, and no two are alike', () => {
  const tokens = Array.from({ length: 2_000 }, () => newToken('api_key'));
  for (const token of tokens) {
    assert.match(token, /^brt_[0-9A-Za-z]{38}$/);
    assert.equal(tokenKind(token), 'api_key');
  }
  assert.equal(new Set(tokens).size, tokens.length);
});

test('every base62 character is about equally frequent in the random part', () => {
  const counts = new Map<string, number>();
  for (let index = 0; index < 2_000; index += 1)
    for (const character of newToken('api_key').slice(4, 36)) counts.set(character, (counts.get(character) ?? 0) + 1);
  // 64,000 draws over 62: 1,032 expected, standard deviation 32; eight deviations cannot occur by
  // chance.
  for (const character of BASE62) assert.ok(Math.abs((counts.get(character) ?? 0) - 1_032) < 256, character);
});

test('a token with any one character changed, or cut, or lengthened, fails the check', () => {
  const token = newToken('api_key');
  fc.assert(
    fc.property(fc.nat({ max: token.length - 1 }), fc.constantFrom(...BASE62), (at, character) => {
      const changed = token.slice(0, at) + character + token.slice(at + 1);
      assert.equal(tokenKind(changed), changed === token ? 'api_key' : null);
    }),
  );
  fc.assert(
    fc.property(fc.nat({ max: token.length - 1 }), (length) => assert.equal(tokenKind(token.slice(0, length)), null)),
  );
  assert.equal(tokenKind(`${token}a`), null);
  assert.equal(tokenKind(` ${token}`), null);
});

test('swapping two adjacent characters fails the check', () => {
  const token = newToken('api_key');
  for (let at = 4; at < token.length - 1; at += 1) {
    const swapped = token.slice(0, at) + (token[at + 1] ?? '') + (token[at] ?? '') + token.slice(at + 2);
    assert.equal(tokenKind(swapped), swapped === token ? 'api_key' : null);
  }
});

test('arbitrary text is no token', () => {
  fc.assert(fc.property(fc.string(), (text) => assert.equal(tokenKind(text), null)));
  fc.assert(fc.property(fc.stringMatching(/^brt_[0-9A-Za-z]{38}$/), (text) => assert.equal(tokenKind(text), null)));
});

test('the stored hash is SHA-256, and the shown prefix reveals six random characters', () => {
  const token = newToken('api_key');
  assert.equal(tokenSha256(token).byteLength, 32);
  assert.equal(tokenPrefix(token), token.slice(0, 10));
});

test('each kind of token has its own prefix, and exchanging prefixes fails the check', () => {
  for (const kind of AUTH_KINDS) {
    const token = newToken(kind);
    assert.equal(tokenKind(token), kind);
    for (const other of AUTH_KINDS)
      if (other !== kind) assert.equal(tokenKind(TOKEN_PREFIXES[other] + token.slice(4)), null);
  }
});
