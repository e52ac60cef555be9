// Resolution of a caller's path in a sandbox.
import assert from 'node:assert/strict';
import { posix } from 'node:path';
import { test } from 'node:test';
import { FILE_LIMITS } from '@berth/contract/route/limits.ts';
import fc from 'fast-check';
import { filePath, folderPath, quotedPath } from '../../../src/rules/files/path.ts';

const CASES: [given: string, path: string][] = [
  ['', '/code'],
  ['.', '/code'],
  ['/', '/'],
  ['//', '/'],
  ['a', '/code/a'],
  ['a/b.txt', '/code/a/b.txt'],
  ['./a//b/', '/code/a/b'],
  ['../etc/hosts', '/etc/hosts'],
  ['../../../..', '/'],
  ['/etc/../code/./x', '/code/x'],
  ['/code', '/code'],
  ['...', '/code/...'],
  ['..a', '/code/..a'],
  [' a ', '/code/ a '],
  ['a\nb', '/code/a\nb'],
  ['~/x', '/code/~/x'],
  ['C:\\x', '/code/C:\\x'],
  ['🦭/é', '/code/🦭/é'],
  ['%2e%2e', '/code/%2e%2e'],
];

for (const [given, path] of CASES) {
  test(`the folder ${JSON.stringify(given)} is ${path}`, () => {
    assert.equal(folderPath(given), path);
  });
}

test('any path resolves to an absolute one below /code, and resolving again changes nothing', () => {
  const part = fc.oneof(
    fc.constantFrom('', '.', '..', '...', 'a', 'code'),
    fc.string({ unit: 'grapheme', maxLength: 10 }),
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 12 }), fc.boolean(), (parts, absolute) => {
      const given = (absolute ? '/' : '') + parts.join('/');
      const path = folderPath(given);
      assert.equal(path, posix.resolve('/code', given));
      assert.equal(folderPath(path), path);
    }),
  );
});

test('a path that can only be a folder is no file path', () => {
  for (const given of ['', '/', 'a/', '.', '..', 'a/.', 'a/..', '/code/', '/..', 'a//'])
    assert.throws(() => filePath(given), { code: 'not_a_file' }, given);

  for (const given of ['a', '...', 'a/...', '.a', 'a.', '/a..', '../a', 'a/../b', ' '])
    assert.equal(filePath(given), folderPath(given));
});

test('a path of 4,095 bytes is accepted and 4,096 refused, counted in UTF-8 after resolving dots', () => {
  const most = FILE_LIMITS.pathBytes;
  assert.equal(folderPath(`/${'a'.repeat(most - 1)}`).length, most);
  assert.throws(() => folderPath(`/${'a'.repeat(most)}`), {
    code: 'file_path_invalid',
    message: /4096 bytes exceed the limit of 4095 bytes/,
  });
  assert.throws(() => folderPath('🦭'.repeat(1_100)), { code: 'file_path_invalid' });
  assert.equal(folderPath(`${'x/../'.repeat(2_000)}a`), '/code/a');
});

test('a path in a message is quoted and truncated', () => {
  assert.equal(quotedPath('/a\n"b"'), String.raw`"/a\n\"b\""`);
  assert.equal(quotedPath('x'.repeat(4_000)).length, 205);
});
