// Cursors of replies and turns.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readReplyCursor, writeReplyCursor } from '../../../src/rules/agents/cursor.ts';

const ID = 'ags_aaaaaaaaaaaaaaaaaaaaaaaa';

test('a cursor reads back as its number, in its list and session only', () => {
  for (const number of [0, 1, 10_000, Number.MAX_SAFE_INTEGER]) {
    const cursor = writeReplyCursor('output', ID, number);
    assert.match(cursor, /^[\w-]+$/);
    assert.equal(readReplyCursor('output', ID, cursor), number);
    assert.throws(() => readReplyCursor('turns', ID, cursor), { code: 'invalid_request' });
    assert.throws(() => readReplyCursor('output', ID.replaceAll('a', 'b'), cursor), { code: 'invalid_request' });
  }
  assert.equal(readReplyCursor('output', ID, undefined), 0);
});

test('a cursor that nobody was given is refused', () => {
  const written = (text: string): string => Buffer.from(text).toString('base64url');
  for (const cursor of [
    '',
    'x',
    '1',
    written(`output.${ID}.`),
    written(`output.${ID}.-1`),
    written(`output.${ID}.01`),
    written(`output.${ID}.1.5`),
    written(`output.${ID}.9007199254740993`),
    `${writeReplyCursor('output', ID, 1)}=`,
  ])
    assert.throws(() => readReplyCursor('output', ID, cursor), { code: 'invalid_request' }, cursor);
});
