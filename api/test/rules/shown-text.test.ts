// Characters that hide or reorder text, in text by which a person decides.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shownEnd, shownText } from '../../src/rules/shown-text.ts';

const lines = (text: string): string => shownText(text, { isLine: false, limit: 1_000 }).text;
const line = (text: string): string => shownText(text, { isLine: true, limit: 1_000 }).text;

test('characters that reorder text, or are displayed as nothing, appear as their code', () => {
  for (const [text, shown] of [
    ['rm \u202e-rf', String.raw`rm \u{202e}-rf`],
    ['a\u2066b\u2069\u200f', String.raw`a\u{2066}b\u{2069}\u{200f}`],
    ['a\u200bb\u00adc\ufeff', String.raw`a\u{200b}b\u{ad}c\u{feff}`],
    ['tag \u{e0041}', String.raw`tag \u{e0041}`],
    ['\u3164\u115f\u034f', String.raw`\u{3164}\u{115f}\u{34f}`],
    ['a\u200db\ufe0fc', String.raw`a\u{200d}b\u{fe0f}c`],
    ['\u001b[2K\u0000\u0085', String.raw`\u{1b}[2K\u{0}\u{85}`],
    ['\u2028\u2029\ud800x', String.raw`\u{2028}\u{2029}\u{d800}x`],
  ] as const)
    assert.deepEqual([lines(text), line(text)], [shown, shown]);
});

test('ordinary text and known emoji stay; breaks and tabs stay in a text of lines only', () => {
  for (const text of ['echo "é ü ñ 日本語 עברית"', '👩‍👩‍👧 ❤️ 1️⃣ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 🇩🇪 👍🏽'])
    assert.deepEqual([lines(text), line(text)], [text, text]);
  assert.equal(lines('a\n\tb\r\n'), 'a\n\tb\\u{d}\n');
  assert.equal(line('a\n\tb'), String.raw`a\u{a}\u{9}b`);
  // A flag that is none hides its tags.
  assert.equal(lines('🏴\u{e0061}\u{e007f}'), String.raw`🏴\u{e0061}\u{e007f}`);
});

test('the result has at most the characters of the limit, and says that it is cut', () => {
  const cut = (text: string, limit: number) => shownText(text, { isLine: false, limit });
  assert.deepEqual(cut('abc', 3), { text: 'abc', isCut: false });
  assert.deepEqual(cut('abcd', 3), { text: 'abc', isCut: true });
  assert.deepEqual(cut('ab😀', 3), { text: 'ab', isCut: true });
  assert.deepEqual(cut('\u202e'.repeat(100_000), 16), { text: String.raw`\u{202e}\u{202e}`, isCut: true });
});

test('the end of an output has no escape sequences, and one line for each that was written', () => {
  for (const [output, text] of [
    ['\u001b[1;31mred\u001b[0m\u001b]8;;http://a\u0007link\u001b]8;;\u001b\\', 'redlink'],
    ['a\r\nb\r\r\nc\rd', 'a\nb\nc\nd'],
    ['\u001b', String.raw`\u{1b}`],
    ['\0\u202e\ufffd\t\ud800', `${String.raw`\u{0}\u{202e}`}\ufffd\t${String.raw`\u{d800}`}`],
  ] as const)
    assert.deepEqual(shownEnd(output, 100), { text, isCut: false });
  assert.deepEqual(shownEnd('one two', 3), { text: 'two', isCut: true });
  assert.deepEqual(shownEnd('😀b', 2), { text: 'b', isCut: true });
  // Sequences without an end.
  for (const start of ['\u001b[', '\u001b]', '\u001b[1;'])
    assert.equal(shownEnd(`${start.repeat(30_000)}\nend`, 3).text, 'end');
});
