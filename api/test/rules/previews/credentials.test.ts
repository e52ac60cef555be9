// Removal of Berth's credentials, and nothing else, from a preview request.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  askingForCookie,
  previewCookieName,
  setPreviewCookie,
  takeCookie,
  takeToken,
  withToken,
} from '../../../src/rules/previews/credentials.ts';

const HTTP = 'http://localhost:4800';
const HTTPS = 'https://previews.example.com';

test('our token is removed from any position and encoding; the rest stays byte for byte', () => {
  for (const [target, token, rest] of [
    ['/?token=bpt_a', 'bpt_a', '/'],
    ['/?token=bpt_a&x=1', 'bpt_a', '/?x=1'],
    ['/?x=1&token=bpt_a', 'bpt_a', '/?x=1'],
    ['/a/b?x=%41&&token=bpt_a&y=+&z', 'bpt_a', '/a/b?x=%41&&y=+&z'],
    ['/?token=bpt_a&token=bpt_b', 'bpt_a', '/'],
    ['/?token=mine&token=bpt_b&token=', 'bpt_b', '/?token=mine&token='],
    ['/?%74oken=bpt%5Fa', 'bpt_a', '/'],
    ['?token=bpt_a', 'bpt_a', ''],
    ['/?token=bpt_a?token=bpt_b', 'bpt_a?token=bpt_b', '/'],
  ] as const)
    assert.deepEqual(takeToken(target), { token, target: rest, asked: false }, target);
});

test('an app keeps its own parameters, including its own token', () => {
  for (const target of [
    '/',
    '/?',
    '*',
    '/token=bpt_a',
    '/?token',
    '/?token=',
    '/?token=abc',
    '/?token=BPT_a',
    '/?Token=bpt_a',
    '/?token[]=bpt_a',
    '/?x=token=bpt_a',
    '/?token%=bpt_a',
    '/?token=%zzbpt_a',
    '/?token=%00bpt_a',
    '/?a=%ff&b=%',
    '/#?x',
  ])
    assert.deepEqual(takeToken(target), { token: null, target, asked: false }, target);
});

const part = fc.stringMatching(/^[\w%.+=/-]{0,12}$/).filter((text) => !text.includes('bpt'));

test('adding a token to any target and removing it returns both', () => {
  fc.assert(
    fc.property(
      part,
      fc.array(part, { maxLength: 4 }),
      fc.stringMatching(/^bpt_[\w.-]{1,40}$/),
      (path, pairs, token) => {
        const target = `/${path}${pairs.length === 0 ? '' : `?${pairs.join('&')}`}`;
        assert.deepEqual(takeToken(withToken(target, token)), { token, target, asked: false });
        assert.deepEqual(takeToken(askingForCookie(target, token)), { token, target, asked: true });
        assert.equal(withToken(withToken(target, 'bpt_old'), token), withToken(target, token));
      },
    ),
  );
});

test('all of our cookies are removed; others stay unchanged, even with similar names', () => {
  for (const [header, value, rest] of [
    ['berth_preview=a', 'a', undefined],
    ['berth_preview=a; x=1', 'a', 'x=1'],
    ['x=1; berth_preview=a; y="2;3"', 'a', 'x=1; y="2;3"'],
    ['berth_preview=a; berth_preview=b', 'a', undefined],
    ['x=1;berth_preview = a ;y=2', 'a', 'x=1;y=2'],
    ['berth_preview=', '', undefined],
    ['berth_preview', null, undefined],
  ] as const)
    assert.deepEqual(takeCookie('berth_preview', header), { value, header: rest }, header);

  for (const header of [
    undefined,
    '',
    'x=1',
    'berth_previews=a',
    'xberth_preview=a',
    '__Host-berth_preview=a',
    'x=berth_preview=a',
    'Berth_preview=a',
  ]) {
    assert.deepEqual(
      takeCookie('berth_preview', header),
      { value: null, header: header === '' ? '' : header },
      String(header),
    );
  }

  assert.deepEqual(takeCookie('__Host-berth_preview', '__Host-berth_preview=a; berth_preview=b'), {
    value: 'a',
    header: 'berth_preview=b',
  });
});

test('over https the cookie is host-bound, Secure and partitioned; over http it is same-site', () => {
  assert.equal(previewCookieName(HTTP), 'berth_preview');
  assert.equal(setPreviewCookie(HTTP, 'v', 59.9), 'berth_preview=v; Path=/; Max-Age=59; HttpOnly; SameSite=Lax');
  assert.equal(
    setPreviewCookie(HTTPS, 'v', -1),
    '__Host-berth_preview=v; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=None; Partitioned',
  );
});
