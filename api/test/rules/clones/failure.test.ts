// Git's messages are untrusted: they become short, printable and free of the clone's credentials.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { cleanOutput, cleanWords, cloneFailure } from '../../../src/rules/clones/failure.ts';

test("a reason has its code, its sentence and git's message, if any", () => {
  assert.deepEqual(cloneFailure('branch_not_found'), {
    code: 'branch_not_found',
    message: 'the repository has no such branch',
  });
  assert.deepEqual(cloneFailure('branch_not_found', 'fatal: Remote branch x not found in upstream origin'), {
    code: 'branch_not_found',
    message: 'the repository has no such branch: fatal: Remote branch x not found in upstream origin',
  });
  assert.equal(cloneFailure('failed', ' \n\t').message, 'git could not clone the repository');
});

for (const [title, words, secrets, expected] of [
  ['terminal escapes', '\u001b[2J\u001b[31mfatal\u001b[0m: \u001b]0;title\u0007no', [], 'fatal: no'],
  ['lines and tabs', 'one\r\ntwo\tthree\u2028four', [], 'one two three four'],
  ['characters that turn text around, or cannot be seen', 'a\u202eb\u200bc\u2066d\ufeff', [], 'a b c d'],
  ['halves of characters', 'a\ud800b', [], 'a b'],
  [
    'a user in a URL',
    "unable to access 'https://user:pa55@git.test/a'",
    [],
    "unable to access 'https://[redacted]@git.test/a'",
  ],
  ['a secret', 'wrong token s3cret-token!', ['s3cret-token'], 'wrong token [redacted]!'],
  ['a secret that only shows when escapes are gone', 's3cret\u001b[0m-token', ['s3cret-token'], '[redacted]'],
  ['a secret that is part of another', 'abcdef and abcd', ['abcd', 'abcdef'], '[redacted] and [redacted]'],
  ['a secret of a few letters, which is in any sentence', 'fatal: no', ['at'], ''],
  ['a secret of a few letters that is not in it', 'fatal: no', ['xy'], 'fatal: no'],
] as const) {
  test(`a message is shown without ${title}`, () => {
    assert.equal(cleanWords(words, secrets), expected);
  });
}

test('any message with any secret becomes short plain text without the secret', () => {
  const secret = fc.oneof(
    fc.string({ minLength: 1, maxLength: 12 }),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }),
  );
  const noise = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('\u001b[', '\u001b]', '\u0007', 'm', ' ', '\ud83d', 'x'.repeat(500)),
  );
  fc.assert(
    fc.property(secret, fc.array(noise, { maxLength: 6 }), fc.nat(6), (token, parts, at) => {
      const words = [...parts.slice(0, at), token, ...parts.slice(at)].join('');
      const clean = cleanWords(words, [token]);
      assert.ok(clean.length <= 401);
      assert.ok(clean.isWellFormed());
      assert.doesNotMatch(clean, /[\p{Cc}\p{Cf}\u2028\u2029]/u);
      // The replacement text may itself contain the secret, and truncation may leave the start of
      // one.
      if (token.trim() === token && token.length > 1 && !'[redacted]…'.includes(token))
        assert.ok(!clean.includes(token), JSON.stringify(words));
    }),
    { numRuns: 3_000 },
  );
});

for (const [title, output, secrets, expected] of [
  ['its lines', 'one\r\ntwo\n\tthree\rfour\n', [], 'one\ntwo\n\tthree\nfour\n'],
  ['hidden characters as codes', '\u001b[31ma\u001b[0m\u202eb\0', [], 'a\\u{202e}b\\u{0}'],
  ['no secret', 'a s3cret-token\ns3cret\u001b[0m-token', ['s3cret-token'], 'a [redacted]\n[redacted]'],
  ['no user of a URL', "'https://user:pa55@git.test/a'", [], "'https://[redacted]@git.test/a'"],
] as const) {
  test(`git's output is shown with ${title}`, () => {
    assert.deepEqual(cleanOutput({ text: output, truncated: false }, secrets), { text: expected, truncated: false });
  });
}

test("git's output is cut at the front, where no part of a secret stays", () => {
  const clean = (text: string, truncated: boolean) => cleanOutput({ text, truncated }, ['s3cret-token']);
  assert.deepEqual(clean('cret-token in a cut line\nrest', true), { text: 'rest', truncated: true });
  assert.deepEqual(clean('cret-token in a single line', true), { text: '', truncated: true });
  const { text, truncated } = clean('s3cret-token '.repeat(10_000), false);
  assert.deepEqual([text.length, truncated, text.includes('cret')], [16_384, true, false]);
  assert.deepEqual(cleanOutput({ text: 'fatal: no', truncated: false }, ['at']), { text: '', truncated: false });
});
