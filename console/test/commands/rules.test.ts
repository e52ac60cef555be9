// Shortcuts, the search of the palette, and versions, without a browser.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isFoundBy, keyAfter, matches } from '../../src/rules/page/palette.ts';
import { shortcutOf, type Place } from '../../src/rules/page/shortcuts.ts';
import { isNewer } from '../../src/session/version.ts';

const PLAIN = {
  ...{ ctrlKey: false, metaKey: false, altKey: false, shiftKey: false },
  ...{ isComposing: false, repeat: false },
};
const PAGE = { place: 'page' as Place, mac: false, prefixed: false, singles: true };

const found = (press: Partial<typeof PLAIN> & { key: string }, situation: Partial<typeof PAGE> = {}) =>
  shortcutOf({ ...PLAIN, ...press }, { ...PAGE, ...situation });

test('Control-K opens the palette in fields too, Command-K on a Mac, and neither with more modifiers', () => {
  assert.equal(found({ key: 'k', ctrlKey: true }), 'palette');
  assert.equal(found({ key: 'K', ctrlKey: true }, { place: 'field', singles: false }), 'palette');
  assert.equal(found({ key: 'k', metaKey: true }, { mac: true, place: 'terminal' }), 'palette');
  for (const press of [{ metaKey: true }, { ctrlKey: true, altKey: true }, { ctrlKey: true, shiftKey: true }, {}])
    assert.equal(found({ key: 'k', ...press }), null);
  assert.equal(found({ key: 'k', ctrlKey: true }, { mac: true }), null);
  assert.equal(found({ key: 'k', ctrlKey: true }, { place: 'terminal' }), null);
});

test('a key after g leads to a page, and other keys end the sequence', () => {
  assert.equal(found({ key: 'g' }), 'prefix');
  const second = (key: string, situation: Partial<typeof PAGE> = {}) =>
    found({ key }, { prefixed: true, ...situation });
  assert.deepEqual(
    ['s', 'a', 'i', 'x', 'g'].map((key) => second(key)),
    ['sandboxes', 'agents', 'inbox', null, 'prefix'],
  );
  assert.equal(found({ key: 's' }), null);
  assert.equal(found({ key: 's', shiftKey: true }, { prefixed: true }), null);
});

test('single keys do nothing in fields and the terminal, with modifiers, in a composition, or turned off', () => {
  // On a German keyboard the slash needs the shift key.
  assert.equal(found({ key: '/', shiftKey: true }), 'filter');
  assert.equal(found({ key: '?', shiftKey: true }), 'list');
  for (const place of ['field', 'terminal'] as const) assert.equal(found({ key: '?' }, { place }), null);
  for (const modifier of ['ctrlKey', 'metaKey', 'altKey', 'isComposing', 'repeat'] as const)
    for (const key of ['g', '/', '?']) assert.equal(found({ key, [modifier]: true }), null, `${modifier} ${key}`);
  for (const key of ['g', '/', '?']) assert.equal(found({ key }, { singles: false }), null);
});

test('the palette finds every word in any order and case, and sandboxes as the service does', () => {
  assert.equal(matches('Theme: Dark', 'DARK the'), true);
  assert.equal(matches('Theme: Dark', 'dark light'), false);
  assert.equal(matches('Sandboxes', ''), true);
  const sandbox = { name: 'Web-One', id: 'sbx_abc' };
  assert.deepEqual(
    ['b-o', 'sbx_a', 'bx_a', 'web one'].map((query) => isFoundBy(sandbox, query)),
    [true, true, false, false],
  );
});

test('the arrow keys go round the options', () => {
  assert.equal(keyAfter(['a', 'b', 'c'], 'c', 1), 'a');
  assert.equal(keyAfter(['a', 'b', 'c'], 'a', -1), 'c');
  assert.equal(keyAfter(['a'], 'a', 1), 'a');
  assert.equal(keyAfter([], undefined, -1), null);
});

test('a version is newer by its numbers; an older, equal or unreadable one is not', () => {
  for (const [version, than] of [
    ['0.10.0', '0.9.9'],
    ['1.0.0', '0.99.0'],
    ['0.1.1', '0.1'],
  ] as const) {
    assert.equal(isNewer(version, than), true, version);
    assert.equal(isNewer(than, version), false, than);
  }
  assert.equal(isNewer('0.1.0', '0.1.0'), false);
  for (const version of ['', 'latest', 'v2']) assert.equal(isNewer(version, '0.1.0'), false, version);
});
