// Cookies of apps, proven to be their own: what reaches the browser, and what comes back.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { proveCookie, provenCookies } from '../../../src/rules/previews/app-cookies.ts';

test('a hidden cookie is stored under a name that no sibling can set; a readable one also as it is', () => {
  for (const [cookie, stored] of [
    ['s=1; Path=/; HttpOnly', ['__Host-berth.s=h.1; Path=/; Secure; HttpOnly']],
    ['s=1; HttpOnly; Path=/app; Max-Age=9', ['__Host-berth.s=h.1; Max-Age=9; Path=/; Secure; HttpOnly']],
    [
      's=a=b;SameSite=None;Secure;Partitioned;httponly',
      ['__Host-berth.s=h.a=b;SameSite=None;Partitioned; Path=/; Secure; HttpOnly'],
    ],
    ['t=dark', ['__Host-berth.t=r.dark; Path=/; Secure; HttpOnly', 't=dark']],
    ['t=; Max-Age=0', ['__Host-berth.t=r.; Max-Age=0; Path=/; Secure; HttpOnly', 't=; Max-Age=0']],
    ['__Secure-s=1; Secure; HttpOnly', ['__Host-berth.__Secure-s=h.1; Path=/; Secure; HttpOnly']],
    ['__Host-s=1; Secure; Path=/', ['__Host-s=1; Secure; Path=/']],
    ['__host-s=1; HttpOnly', ['__Host-berth.__host-s=h.1; Path=/; Secure; HttpOnly']],
    // Browsers send a cookie without a name as its value.
    ['=s=1', []],
    ['s', []],
    ['', []],
  ] as const)
    assert.deepEqual(proveCookie(cookie), stored, cookie);
});

test('only proven cookies reach the app, under their own names', () => {
  for (const [header, kept] of [
    ['s=tossed', undefined],
    ['s=tossed; __Host-berth.s=h.own', 's=own'],
    ['__Host-berth.s=h.own; s=tossed; s=again', 's=own'],
    ['__Host-berth.t=r.dark; t=dark', 't=dark'],
    ['__Host-berth.t=r.dark; t=tossed; t=dark', 't=dark'],
    // Deleted, or changed, by a script of the app, or tossed.
    ['__Host-berth.t=r.dark', undefined],
    ['__Host-berth.t=r.dark; t=light', undefined],
    ['__Host-x=1; y=2', '__Host-x=1'],
    ['__host-x=1; __HOST-x=1; __Secure-x=1', undefined],
    ['__Host-berth.s', undefined],
    ['__Host-berth.s=', undefined],
    ['__Host-berth.s=own', undefined],
    ['__Host-berth.s=h.', 's='],
    [';;=; =s=1', undefined],
    ['', undefined],
  ] as const)
    assert.equal(provenCookies(header), kept, header);
});

test('whatever siblings set beside it, an app gets back its own cookies', () => {
  const name = fc.stringMatching(/^[a-z!#$]{1,4}$/);
  const value = fc.stringMatching(/^[\w=".%]{0,8}$/);
  const cookie = fc.record({ name, value, isHidden: fc.boolean() });
  const tossed = fc.array(fc.tuple(name, value), { maxLength: 6 });
  fc.assert(
    fc.property(fc.uniqueArray(cookie, { selector: (one) => one.name, maxLength: 5 }), tossed, (own, others) => {
      const stored = own.flatMap((one) => proveCookie(`${one.name}=${one.value}${one.isHidden ? '; HttpOnly' : ''}`));
      const sent = [...others.map((pair) => pair.join('=')), ...stored.map((one) => one.split(';', 1)[0])];
      const expected = own.map((one) => `${one.name}=${one.value}`).join('; ');
      assert.equal(provenCookies(sent.join('; ')) ?? '', expected);
    }),
  );
});
