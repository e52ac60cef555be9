// Login cookies, and return paths within this service.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { localPath } from '../../src/sign-in/local-path.ts';
import { clearedLoginCookie, loginCookie, readLoginCookie } from '../../src/sign-in/login-cookie.ts';

const HTTPS = 'https://berth.example.test';
const HTTP = 'http://127.0.0.1:4800';
const inSeconds = (seconds: number): Date => new Date(Date.now() + seconds * 1_000 + 500);

test('over https the cookie is host-bound, Secure and HttpOnly', () => {
  assert.equal(
    loginCookie(HTTPS, { credential: 'a.b', expiresAt: inSeconds(60) }),
    '__Host-berth_login=a.b; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure',
  );
  assert.equal(clearedLoginCookie(HTTPS), '__Host-berth_login=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure');
});

test('over http the cookie is HttpOnly; an ended login clears it', () => {
  assert.equal(
    loginCookie(HTTP, { credential: 'a', expiresAt: inSeconds(-5) }),
    'berth_login=a; Path=/; Max-Age=0; HttpOnly; SameSite=Lax',
  );
});

test('a credential is read unchanged among any other cookies', () => {
  fc.assert(
    fc.property(
      fc.string({ minLength: 1, maxLength: 100, unit: 'grapheme' }),
      fc.constantFrom(HTTP, HTTPS),
      (credential, publicUrl) => {
        const pair = loginCookie(publicUrl, { credential, expiresAt: inSeconds(60) }).split(';', 1)[0];
        assert.equal(readLoginCookie(publicUrl, `x=1; not_berth_login=2;${pair}; y`), credential);
        assert.equal(readLoginCookie(publicUrl === HTTP ? HTTPS : HTTP, pair), null);
      },
    ),
  );
});

test('foreign cookies are ignored', () => {
  for (const header of [
    undefined,
    '',
    ';',
    'berth_login',
    'berth_login=',
    'berth_login=%E0%A4%A',
    `berth_login=${'x'.repeat(513)}`,
  ])
    assert.equal(readLoginCookie(HTTP, header), null);
});

const EVIL = [
  '', 'x', 'x/y', '//evil.test', '///evil.test', '/\\evil.test', '\\\\evil.test', '/\\/evil.test',
  'https://evil.test', 'http:evil.test', '/x\\y', 'javascript:alert(1)', ' /x', '/ x', '/\n/evil.test', '/\t/evil.test',
  '/\u0000', '/./\u0009/evil.test', '/x/..//evil.test', '/.//evil.test', '/%2e//evil.test', '/x/%2E%2e//evil.test',
  `/${'x'.repeat(3_000)}`, 7, null, undefined, ['/x'],
]; // prettier-ignore

test('only a path of this service is a valid return path', () => {
  for (const text of EVIL) assert.equal(localPath(text), null, String(text));
  for (const text of [
    '/',
    '/device?user_code=AB-CD',
    '/invitation?token=a_b-c',
    '/x/../y',
    '/a//b',
    '/x?to=//evil.test',
    '/@evil.test',
    '/x#y',
  ])
    assert.equal(localPath(text), new URL(text, HTTPS).href.slice(HTTPS.length), text);
});

test('a redirect to a valid return path never leaves the service', () => {
  const piece = fc.constantFrom(
    '/',
    '\\',
    '.',
    '..',
    ':',
    '@',
    '%2f',
    '%5c',
    '%2e',
    '?',
    '#',
    'evil.test',
    'https',
    '\t',
    '\n',
    ' ',
    'x',
    '\u00a0',
    '/\u2044',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
      const path = localPath(`/${pieces.join('')}`);
      if (path === null) return;
      assert.equal(new URL(path, HTTPS).origin, HTTPS);
      // As allowed in a header.
      assert.match(path, /^\/(?!\/)[\u0021-\u007e]*$/);
      assert.equal(localPath(path), path);
    }),
    { numRuns: 5_000 },
  );
});
