// Replacements in the code of packages: counted, so that a changed package fails the build.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { replaceAll } from '../build/strict-styles.ts';

const ONE = [{ code: 'd.createElement("style")', by: 'sheet()', count: 1 }];

test('a replacement with the expected count changes the code', () => {
  assert.equal(replaceAll('x.js', 'a=d.createElement("style")', ONE), 'a=sheet()');
});

test('a missing or repeated occurrence is an error that names file and code', () => {
  assert.throws(() => replaceAll('x.js', 'a=1', ONE), /x\.js: found 0 times instead of 1: d\.createElement/);
  const twice = 'd.createElement("style");d.createElement("style")';
  assert.throws(() => replaceAll('x.js', twice, ONE), /found 2 times instead of 1/);
});

test('a style element or attribute that no replacement covers is an error', () => {
  const more = 'd.createElement("style");other.createElement("style")';
  assert.throws(() => replaceAll('x.js', more, ONE), /not replaced: createElement\("style"/);
  assert.throws(() => replaceAll('x.js', "e.setAttribute('style',x)", []), /not replaced: setAttribute/);
});
