// Codes of authenticator apps, with the vectors of RFC 6238, and recovery codes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Secret } from 'otpauth';
import { newRecoveryCodes, newSecret, recoveryCodeHash, stepOfCode, totpUri } from '../../src/sign-in/totp.ts';

/** RFC 6238, appendix B; the last six digits. */
const RFC_SECRET = Secret.fromUTF8('12345678901234567890').base32;
const VECTORS: readonly (readonly [seconds: number, code: string])[] = [
  [59, '287082'],
  [1_111_111_109, '081804'],
  [1_111_111_111, '050471'],
  [1_234_567_890, '005924'],
  [2_000_000_000, '279037'],
  [20_000_000_000, '353130'],
];

test('the codes of RFC 6238 are valid at their time, and one step before and after', () => {
  for (const [seconds, code] of VECTORS) {
    const step = Math.floor(seconds / 30);
    for (const shift of [-30, 0, 30]) assert.equal(stepOfCode(RFC_SECRET, code, (seconds + shift) * 1_000), step);
    for (const shift of [-60, 60]) assert.equal(stepOfCode(RFC_SECRET, code, (seconds + shift) * 1_000), null);
  }
});

test('a code may contain spaces; other text is no code', () => {
  assert.equal(stepOfCode(RFC_SECRET, ' 287 082 ', 59_000), 1);
  for (const typed of ['', '28708', '2870820', '28708x', '２８７０８２', 'NaN', '-87082', '0x1234'])
    assert.equal(stepOfCode(RFC_SECRET, typed, 59_000), null, typed);
});

test('a secret has 160 bits, and the address names service and account', () => {
  const secret = newSecret();
  assert.match(secret, /^[A-Z2-7]{32}$/);
  assert.notEqual(secret, newSecret());
  const uri = new URL(totpUri(secret, 'berth.example.test', 'a&b=c@example.test'));
  assert.equal(uri.protocol, 'otpauth:');
  assert.equal(uri.searchParams.get('secret'), secret);
  assert.equal(uri.searchParams.get('issuer'), 'Berth (berth.example.test)');
  assert.match(decodeURIComponent(uri.pathname), /:a&b=c@example\.test$/);
});

test('ten recovery codes differ; case and separators do not matter', () => {
  const codes = newRecoveryCodes();
  assert.equal(new Set(codes).size, 10);
  for (const code of codes) {
    assert.match(code, /^[a-hj-km-np-z2-9]{4}(-[a-hj-km-np-z2-9]{4}){3}$/);
    const hash = recoveryCodeHash(code);
    assert.deepEqual(recoveryCodeHash(` ${code.toUpperCase().replaceAll('-', ' ')}`), hash);
  }
  for (const typed of ['', '123456', 'abcd-efgh-jkmn-pqr', 'abcd-efgh-jkmn-pqrst'])
    assert.equal(recoveryCodeHash(typed), null);
});
