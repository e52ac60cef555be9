// Branch names, compared with git's own check, and repository names and URLs.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { branchName, repository } from '../../src/sandboxes/fields.ts';

const takes = (schema: typeof repository, value: string): boolean => schema.safeParse(value).success;

/**
 * True if git accepts the branch name. Runs outside any repository. Git expands `@` to HEAD, so it
 * is no branch name.
 */
function gitTakes(name: string): boolean {
  if (name === '@') return false;
  const { status, error } = spawnSync('git', ['check-ref-format', '--branch', name], {
    cwd: '/',
    stdio: 'ignore',
    env: { PATH: process.env['PATH'], GIT_DIR: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1' },
  });
  assert.ifError(error);
  return status === 0;
}

const pieces = fc.constantFrom(
  ...[
    'a',
    'b1',
    'HEAD',
    '-',
    '.',
    '..',
    '/',
    '//',
    '@',
    '@{',
    '{',
    '}',
    '~',
    '^',
    ':',
    '?',
    '*',
    '[',
    ']',
    '\\',
    ' ',
    '\t',
    '\n',
    '\x7f',
    '\x1f',
    '.lock',
  ],
  ...['lock', 'é', '名', '💡', '%', '#', '!', '"', "'", '$', '&', '(', '|', ';', '<', ',', '=', '_', '+'],
);
const names = fc.array(pieces, { minLength: 1, maxLength: 6 }).map((parts) => parts.join(''));

test('branch names are accepted exactly if git check-ref-format accepts them', () => {
  fc.assert(
    fc.property(names, (name) => {
      assert.equal(takes(branchName, name), gitTakes(name), JSON.stringify(name));
    }),
    { numRuns: 300 },
  );
});

for (const name of [
  'main',
  'feature/x',
  'release-1.2.x',
  'a@b',
  'v1.0',
  'x/HEAD',
  'head',
  '名/é',
  'a'.repeat(255),
  "o'brien",
  'a{b}',
  'x.locks/y',
]) {
  test(`the branch ${name.slice(0, 20)} is accepted, as by git`, () => {
    assert.deepEqual([takes(branchName, name), gitTakes(name)], [true, true]);
  });
}

for (const name of [
  'HEAD',
  '@',
  '-x',
  '--upload-pack=x',
  '.x',
  'x/.y',
  'x..y',
  'x/',
  '/x',
  'x//y',
  'x.',
  'x.lock',
  'x.lock/y',
  'x@{1}',
  'a b',
  'a\\b',
  'a~1',
  'a^',
  'a:b',
  'a?',
  'a*',
  'a[b',
  'a\n',
  '\x7f',
]) {
  test(`the branch ${JSON.stringify(name)} is rejected, as by git`, () => {
    assert.deepEqual([takes(branchName, name), gitTakes(name)], [false, false]);
  });
}

test('a branch with invisible or unstorable characters is rejected although git accepts it', () => {
  for (const name of ['a\u00a0b', 'a\u2028b', 'a\u0085b', 'a\ud800'])
    assert.equal(takes(branchName, name), false, JSON.stringify(name));
});

for (const value of [
  'acme/web',
  'a/b',
  'acme-1/my.repo_2',
  'acme/.github',
  'acme/web.git',
  'https://git.example.com/acme/web',
  'https://git.example.com/acme/web.git',
  'https://git.example.com:8443/scm/group/sub/repo.git',
  'http://10.0.0.1:3000/a',
  'https://dev.example.com/org/My%20Project/_git/repo',
]) {
  test(`the repository ${value} is accepted`, () => {
    assert.ok(takes(repository, value));
  });
}

for (const value of [
  'web',
  'acme/',
  '/web',
  'acme/web/more',
  'acme/..',
  '-o/web',
  'acme/a b',
  'ACME:web',
  'git@git.example.com:acme/web.git',
  'ssh://git@git.example.com/acme/web',
  'git://git.example.com/acme/web',
  'file:///etc/passwd',
  'ext::sh -c id',
  'https://user@git.example.com/acme/web',
  'https://user:token@git.example.com/acme/web',
  'https://git.example.com',
  'https://git.example.com/',
  'https://git.example.com/a//b',
  'https://git.example.com/a/../b',
  'https://git.example.com/a/%2e%2e/b',
  'https://git.example.com/a%2fb',
  'https://git.example.com/a%0ab',
  'https://git.example.com/a%7fb',
  'https://git.example.com/a?b=c',
  'https://git.example.com/a#b',
  'https://git.example.com/a b',
  'https://git.example.com\\@evil.example.com/a',
  'https:///acme/web',
  'https://git_example.com/a/b',
  'HTTPS://git.example.com/a/b',
  `acme/${'x'.repeat(196)}`,
  `https://git.example.com/${'x'.repeat(2_048)}`,
]) {
  test(`the repository ${value.slice(0, 60)} is rejected`, () => {
    assert.ok(!takes(repository, value));
  });
}
