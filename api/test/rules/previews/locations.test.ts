// URLs in the head of an app's response: the app's own loopback address, and the token of a visitor
// without cookies.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { locationWithToken, publicLocation, publicRefresh } from '../../../src/rules/previews/locations.ts';

const ORIGIN = 'https://3000-a.previews.example.com';
const at = (port: number): Parameters<typeof publicLocation>[1] => ({ origin: ORIGIN, port });

test('a URL at the app’s own port of a loopback address moves to the preview; the rest stays', () => {
  for (const [port, location, expected] of [
    [3000, 'http://localhost:3000/a?b=%20c#d', `${ORIGIN}/a?b=%20c#d`],
    [3000, 'https://localhost:3000', ORIGIN],
    [3000, 'http://127.0.0.1:3000/', `${ORIGIN}/`],
    [3000, 'http://0.0.0.0:3000?x', `${ORIGIN}?x`],
    [3000, 'http://[::1]:3000/', `${ORIGIN}/`],
    [3000, 'http://[::]:3000/', `${ORIGIN}/`],
    [3000, '//LocalHost:3000/x', `${ORIGIN}/x`],
    [80, 'http://localhost/x', `${ORIGIN}/x`],
    [443, 'https://localhost/x', `${ORIGIN}/x`],
  ] as const)
    assert.equal(publicLocation(location, at(port)), expected, location);
  for (const [port, location] of [
    [3000, 'http://localhost:3001/'],
    [3000, 'http://localhost/'],
    [80, 'https://localhost/'],
    [3000, 'http://localhost:30000/'],
    [3000, 'http://localhost.example.com:3000/'],
    [3000, 'http://user@localhost:3000/'],
    [3000, 'http://localhost:3000@example.com/'],
    [3000, 'http://127.0.0.10:3000/'],
    [3000, '/http://localhost:3000/'],
    [3000, '/x?to=http://localhost:3000/'],
    [3000, 'ftp://localhost:3000/'],
    [3000, ''],
  ] as const)
    assert.equal(publicLocation(location, at(port)), location);
});

test('the URL of a Refresh header moves, too', () => {
  for (const [refresh, expected] of [
    ['0; url=http://localhost:3000/x', `0; url=${ORIGIN}/x`],
    ['5;URL="http://127.0.0.1:3000/x"', `5;URL="${ORIGIN}/x"`],
    ['0, http://localhost:3000/', `0, ${ORIGIN}/`],
    ['5', '5'],
    ['0; url=/x', '0; url=/x'],
  ] as const)
    assert.equal(publicRefresh(refresh, at(3000)), expected);
});

test('a redirect within the preview gets the token; one to another origin never does', () => {
  const base = `${ORIGIN}/a/b?c`;
  for (const [location, expected] of [
    ['/en?x=1#top', `${ORIGIN}/en?x=1&token=bpt_t#top`],
    ['en', `${ORIGIN}/a/en?token=bpt_t`],
    ['?y', `${ORIGIN}/a/b?y&token=bpt_t`],
    [`${ORIGIN}/x`, `${ORIGIN}/x?token=bpt_t`],
    ['//3000-a.previews.example.com/x', `${ORIGIN}/x?token=bpt_t`],
  ] as const)
    assert.equal(locationWithToken(location, base, 'bpt_t'), expected);
  for (const location of [
    'https://example.com/',
    '//example.com/x',
    '/\\example.com/x',
    'https://3001-a.previews.example.com/',
    'http://3000-a.previews.example.com/',
    'https://3000-a.previews.example.com@example.com/',
    'mailto:a@example.com',
    'https://[',
    '/\u00e4',
  ])
    assert.equal(locationWithToken(location, base, 'bpt_t'), location);
});
