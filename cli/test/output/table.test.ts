// Tables keep columns and width for any content.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import stringWidth from 'string-width';
import { bar, bytes, hours, percent } from '../../src/output/amount.ts';
import { fieldLines } from '../../src/output/fields.ts';
import { tableLines, type Column } from '../../src/output/table.ts';

interface Row {
  id: string;
  name: string;
}

const ID = 'sbx_aaaaaaaaaaaaaaaaaaaaaaaa';
const HOSTILE = [
  'plain',
  '\u001B[31mred\u001B[2J\u001B]0;title\u0007',
  'a\nb\tc\rd',
  '\u202Egnp.exe\u2066\u200F',
  '日本語の名前がとても長い場合でも表は崩れない',
  '👨‍👩‍👧‍👦🏳️‍🌈e\u0301a\u0300',
  '\u009B31m\u0085\u2028\uFEFF',
  'x'.repeat(100),
  '',
];
const COLUMNS: readonly Column<Row>[] = [
  { title: 'id', value: ({ id }) => id, whole: true },
  { title: 'name', value: ({ name }) => name, least: 8 },
  { title: 'n', value: ({ name }) => name.length, align: 'right' },
  { title: 'again', value: ({ name }) => name, optional: true },
];
const rows = HOSTILE.map((name) => ({ id: ID, name }));

for (const width of [20, 40, 60, 80, 120, undefined]) {
  test(`foreign text stays in its column and is escaped, in ${width ?? 'any number of'} cells`, () => {
    const lines = tableLines(COLUMNS, rows, { width });
    assert.equal(lines.length, rows.length + 1);
    const [titles = '', ...rest] = lines;
    const second = titles.indexOf('NAME');
    for (const line of rest) {
      // oxlint-disable-next-line no-control-regex -- these may not be there
      assert.doesNotMatch(line, /[\u0000-\u001F\u007F-\u009F\u200E\u200F\u2028-\u202E\u2066-\u2069\uFEFF]/);
      assert.ok(stringWidth(line) <= (width ?? Infinity), `${stringWidth(line)}: ${line}`);
      assert.equal(line.slice(second - 2, second), '  ');
      if (width === undefined || width >= 60) assert.ok(line.startsWith(`${ID}  `));
    }
  });
}

test('optional columns are dropped before required ones are cut, and colours take no width', () => {
  const line = { id: ID, name: 'a name of some length' };
  const titles = (width: number): string => tableLines(COLUMNS, [line], { width })[0] ?? '';
  assert.match(titles(120), /AGAIN$/);
  assert.doesNotMatch(titles(45), /AGAIN/);
  assert.match(titles(45), /^ID +NAME +N$/);
  const painted = tableLines(
    [{ ...COLUMNS[1], style: () => 'red' } as Column<Row>, COLUMNS[2] as Column<Row>],
    [line],
    {
      paint: (_style, text) => `<${text}>`,
    },
  );
  assert.deepEqual(painted, ['NAME                    N', '<a name of some length>  21']);
});

test('fields without a value are omitted, and values are shown plainly', () => {
  const lines = fieldLines([
    ['a', 'x\u001B[2J'],
    ['nothing', null],
    ['empty', ''],
    ['number', 0],
  ]);
  assert.deepEqual(lines, [String.raw`a       x\u001b[2J`, 'number  0']);
});

test('amounts are rounded to readable figures, shares never up', () => {
  assert.deepEqual([0, 999, 1_023.6, 1_536, 10_240, 5 * 1_024 ** 3].map(bytes), [
    '0 B',
    '999 B',
    '1.0 KiB',
    '1.5 KiB',
    '10 KiB',
    '5.0 GiB',
  ]);
  assert.deepEqual([0, 0.04, 9.99, 79.99, 100, 250.5].map(percent), ['0 %', '0 %', '9.9 %', '79 %', '100 %', '250 %']);
  assert.deepEqual([0, 0.0042, 1.25, 99.96, 1_234.5].map(hours), ['0 h', '0.004 h', '1.3 h', '100 h', '1235 h']);
  assert.deepEqual(
    [-1, 0, 50, 100, 300].map((share) => bar(share, 4)),
    ['░░░░', '░░░░', '██░░', '████', '████'],
  );
});
