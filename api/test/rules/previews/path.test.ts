// The return from sign-in leads only to the original preview and path.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { withToken } from '../../../src/rules/previews/credentials.ts';
import { previewPath, withPreviewPath } from '../../../src/rules/previews/path.ts';
import { localPath } from '../../../src/sign-in/local-path.ts';

const SIGN_IN = 'https://berth.example.com/preview?link=bpt_team.a.b&sandbox=sbx_a&port=3000';
const ORIGIN = 'https://3000-a.previews.example.com';

test('a valid path stays byte for byte; anything else becomes the root', () => {
  for (const path of ['/', '/a', '/a//b/../c?x=%2F&y=a+b&&z', '/?x=//evil.test', '/a:b@c', '/%5C%23%0A', '/"x"'])
    assert.equal(previewPath(path), path);

  for (const none of [
    '',
    'a',
    'evil.test',
    '//evil.test',
    '/\\evil.test',
    '/a#b',
    '/a b',
    '/a\r\nX: y',
    '/a\0',
    '/é',
    'https://evil.test',
    '?x',
    '.',
    '@evil.test',
  ])
    assert.equal(previewPath(none), '/', none);
});

test("any path keeps the browser on the preview's origin, with the token in the query", () => {
  const nasty = fc.string({
    unit: fc.constantFrom('/', '\\', '.', '@', ':', '#', '?', '&', '%', '\n', '\t', ' ', 'a', 'é', 'evil.test'),
    maxLength: 12,
  });
  fc.assert(
    fc.property(fc.oneof(nasty, fc.string()), (text) => {
      const url = new URL(ORIGIN + withToken(previewPath(text), 'bpt_grant.x'));
      assert.equal(url.origin, ORIGIN);
      assert.deepEqual([url.username, url.password, url.hash], ['', '', '']);
      assert.equal(url.searchParams.getAll('token').at(-1), 'bpt_grant.x');
    }),
  );
});

test('the return path is kept if it fits the limit of a sign-in', () => {
  assert.equal(withPreviewPath(SIGN_IN, '/'), SIGN_IN);
  assert.equal(withPreviewPath(SIGN_IN, '//evil.test'), SIGN_IN);
  assert.equal(withPreviewPath(SIGN_IN, '/a?b=c&d'), `${SIGN_IN}&path=%2Fa%3Fb%3Dc%26d`);
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4_000 }), fc.constantFrom('a', '%', '&'), (length, character) => {
      const path = `/${character.repeat(length)}`;
      const url = new URL(withPreviewPath(SIGN_IN, path));
      const kept = url.searchParams.get('path') ?? '/';
      assert.ok(kept === path || kept === '/');
      assert.notEqual(localPath(url.pathname + url.search), null, 'sign-in leads back there');
      assert.equal(
        kept === path,
        (url.pathname + url.search).length <= 2_048 && (length === 0 || url.searchParams.has('path')),
      );
    }),
  );
});
