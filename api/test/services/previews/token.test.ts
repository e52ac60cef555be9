// Preview tokens and cookies: each decodes only where it was made for; no other text does.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { SecretKey, type DerivedKeys } from '../../../src/services/context/secret-key.ts';
import type { PreviewPlace } from '../../../src/rules/previews/host.ts';
import {
  cookieValue,
  grantToken,
  publicToken,
  readCookie,
  readToken,
  teamToken,
  type PreviewCookie,
  type PreviewToken,
} from '../../../src/services/previews/token.ts';

const KEY = new SecretKey(randomBytes(32)).keysFor('preview-link');
const id = (prefix: string): fc.Arbitrary<string> => fc.stringMatching(/^[a-z2-7]{24}$/).map((text) => prefix + text);
const time = fc.integer({ min: 0, max: 4_102_444_800_000 });
const terms = fc.record({ expiresAtMs: time, embeddable: fc.boolean() });
const place: fc.Arbitrary<PreviewPlace> = fc
  .tuple(id('sbx_'), fc.integer({ min: 1, max: 65_535 }))
  .map(([sandboxId, port]) => ({ sandboxId, port }));

const token: fc.Arbitrary<PreviewToken> = fc.oneof(
  id('prv_').map((linkId) => ({ kind: 'public' as const, linkId })),
  terms.map((one) => ({ kind: 'team' as const, ...one })),
  fc.tuple(id('sgn_'), id('usr_'), terms, time).map(([loginId, userId, one, grantedUntilMs]) => ({
    kind: 'grant' as const,
    loginId,
    userId,
    ...one,
    grantedUntilMs,
  })),
);
const cookie: fc.Arbitrary<PreviewCookie> = fc.oneof(
  fc.tuple(id('prv_'), time).map(([linkId, expiresAtMs]) => ({ kind: 'public' as const, linkId, expiresAtMs })),
  fc
    .tuple(id('sgn_'), id('usr_'), terms)
    .map(([loginId, userId, one]) => ({ kind: 'team' as const, loginId, userId, ...one })),
);

function write(key: DerivedKeys, said: PreviewToken, there: PreviewPlace): string {
  switch (said.kind) {
    case 'public':
      return publicToken(key, said.linkId, there);
    case 'team':
      return teamToken(key, said, there);
    default:
      return grantToken(key, said, there);
  }
}

test('a token decodes on its own host with the key', () => {
  fc.assert(
    fc.property(token, place, (said, there) => {
      const text = write(KEY, said, there);
      assert.match(text, /^bpt_[\w.-]{40,200}$/);
      assert.deepEqual(readToken(KEY, text, there), said);
      assert.equal(write(KEY, said, there), text, 'it is derived, and the same each time');
    }),
  );
});

test('a cookie decodes on its own host with the key', () => {
  fc.assert(
    fc.property(cookie, place, (said, there) => {
      const text = cookieValue(KEY, said, there);
      assert.match(text, /^bpc_[\w.-]{40,200}$/);
      assert.deepEqual(readCookie(KEY, text, there), said);
    }),
  );
});

test("tokens and cookies fail on another host, under another key, or in each other's place", () => {
  const otherKey = new SecretKey(randomBytes(32)).keysFor('preview-link');
  fc.assert(
    fc.property(token, cookie, place, place, (said, kept, there, elsewhere) => {
      fc.pre(there.sandboxId !== elsewhere.sandboxId || there.port !== elsewhere.port);
      const [text, value] = [write(KEY, said, there), cookieValue(KEY, kept, there)];
      for (const wrong of [elsewhere, { ...there, port: there.port + 1 }, { ...elsewhere, port: there.port + 1 }]) {
        assert.equal(readToken(KEY, text, wrong), null);
        assert.equal(readCookie(KEY, value, wrong), null);
      }
      assert.equal(readToken(otherKey, text, there), null);
      assert.equal(readCookie(otherKey, value, there), null);
      for (const swapped of [value, value.replace('bpc_', 'bpt_')]) assert.equal(readToken(KEY, swapped, there), null);
      for (const swapped of [text, text.replace('bpt_', 'bpc_')]) assert.equal(readCookie(KEY, swapped, there), null);
    }),
  );
});

test('a token with any character changed, added or removed is invalid', () => {
  fc.assert(
    fc.property(
      token,
      place,
      fc.nat(),
      fc.constantFrom('a', 'A', '7', '.', '_', '-', '=', 'é', '\0'),
      (said, there, at, character) => {
        const text = write(KEY, said, there);
        const index = at % text.length;
        fc.pre(text[index] !== character);
        for (const changed of [
          text.slice(0, index) + character + text.slice(index + 1),
          text.slice(0, index) + text.slice(index + 1),
          text.slice(0, index) + character + text.slice(index),
          text + character,
          character + text,
        ]) {
          // A character that is doubled, or left out of a row of the same ones, may give the same
          // text again.
          if (changed !== text) assert.equal(readToken(KEY, changed, there), null, changed);
        }
      },
    ),
  );
});

test('no other text is valid, however long', () => {
  const there = { sandboxId: 'sbx_aaaaaaaaaaaaaaaaaaaaaaaa', port: 80 };
  fc.assert(
    fc.property(fc.string(), (text) => {
      for (const given of [text, `bpt_${text}`, `bpt_team.${text}`, `bpt_grant.${text}`])
        assert.equal(readToken(KEY, given, there), null);
      for (const given of [text, `bpc_${text}`, `bpc_public.${text}`])
        assert.equal(readCookie(KEY, given, there), null);
    }),
  );
  for (const given of ['', 'bpt_', 'bpt_.', `bpt_${'a'.repeat(100_000)}`, `bpt_team.1.${'A'.repeat(43)}`])
    assert.equal(readToken(KEY, given, there), null);
});

test('tokens and cookies signed with a former key are valid until the key is removed', () => {
  const [first, second] = [randomBytes(32), randomBytes(32)];
  const keysOf = (...masters: [Buffer, ...Buffer[]]) => new SecretKey(...masters).keysFor('preview-link');
  fc.assert(
    fc.property(token, cookie, place, (said, kept, there) => {
      const [text, value] = [write(keysOf(first), said, there), cookieValue(keysOf(first), kept, there)];
      assert.deepEqual(readToken(keysOf(second, first), text, there), said);
      assert.deepEqual(readCookie(keysOf(second, first), value, there), kept);
      assert.equal(readToken(keysOf(second), text, there), null);
      assert.equal(readCookie(keysOf(second), value, there), null);
      assert.deepEqual(readToken(keysOf(second), write(keysOf(second, first), said, there), there), said);
    }),
    { numRuns: 20 },
  );
});
